/** Lets Node find the client of Kafka in the cache of install.sh, which the variable KAFKA_CACHE names. */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const parentURL = pathToFileURL(join(process.env.KAFKA_CACHE, 'package.json')).href;

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, specifier === '@platformatic/kafka' ? { ...context, parentURL } : context),
});
