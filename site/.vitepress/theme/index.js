import { withBase } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { h } from 'vue';
import LiveLookup from './LiveLookup.vue';
import './style.css';

export default {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      // That of the default theme has no main landmark.
      'not-found': () =>
        h('main', { class: 'vp-doc not-found' }, [
          h('h1', 'There is no such page'),
          h('p', h('a', { href: withBase('/') }, 'To the first page')),
        ]),
    }),
  enhanceApp({ app }) {
    app.component('LiveLookup', LiveLookup);
  },
};
