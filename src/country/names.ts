/** Names of countries in other languages than English: those of CLDR, in the version that this Node or browser has. */
import { misuse, orElse } from '../errors.js';

/** Whose long names are clumsy: "Hongkong" in place of "Sonderverwaltungsregion Hongkong". */
const SHORT: readonly string[] = ['HK', 'MO'];

/** Returns the name of a country. @param name the English one, which is returned if the language has none */
export type CountryNames = (code: string, name: string) => string;

/**
 * Returns the names of a language, as {@link namesIn}.
 *
 * @param tag a language tag (BCP 47), such as `de`, `pt-BR` or `zh-Hant`
 * @param option how messages call the tag
 * @throws AtlasError E_USAGE for what is no tag, or a language that has no names here
 */
export function countryNames(tag: string, option: string): CountryNames {
  const language = namedLanguage(tag);
  if (language === undefined) {
    throw misuse(
      `${option} is ${JSON.stringify(tag)}; write the tag of a language that has names here, such as de, pt-BR or zh-Hant`,
    );
  }
  return namesIn(language);
}

/** Returns the names of a language that {@link namedLanguage} returned. Those of English are the package's own. */
export function namesIn(language: string): CountryNames {
  if (/^en\b/i.test(language)) return (_, name) => name;
  const names = (style: 'long' | 'short') =>
    new Intl.DisplayNames([language], { type: 'region', style, fallback: 'none' });
  const [long, short] = [names('long'), names('short')];
  return (code, name) => (SHORT.includes(code) ? short : long).of(code) ?? name;
}

/** Returns the tag of the language whose names a tag gets, one of some hundreds; undefined if there are none, or for what is no tag. */
export function namedLanguage(tag: string): string | undefined {
  const isNoTag = (error: unknown): boolean => error instanceof RangeError;
  const [language] = orElse(() => Intl.DisplayNames.supportedLocalesOf([tag]), isNoTag, []);
  return language && new Intl.DisplayNames([language], { type: 'region' }).resolvedOptions().locale;
}
