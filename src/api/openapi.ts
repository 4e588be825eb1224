/** The OpenAPI 3.1 document, made of schemas/wire.schema.json. */
import { readFileSync } from 'node:fs';
import { WIRE_ERRORS, type WireError } from '../errors.js';
import { MAX_BATCH } from '../limits.js';
import { packageFile } from '../package-root.js';
import { KEY_PARAMETER } from './authenticate.js';
import { wireSchema } from './wire-schema.js';

/** Where clients find the service. With or without `/api/` at the end, as the EU address is published with it. */
export interface BaseUrls {
  default?: string | undefined;
  eu?: string | undefined;
}

const JSON_MEDIA = 'application/json';

/** A base address without the `/api` that the paths bring along. */
function serverUrl(url: string): string {
  return url.replace(/\/+$/, '').replace(/\/api$/, '') || '/';
}

function servers({ default: base, eu }: BaseUrls): { url: string; description: string }[] {
  const list = [{ url: base === undefined ? '/' : serverUrl(base), description: 'The closest server' }];
  if (eu !== undefined) list.push({ url: serverUrl(eu), description: 'Servers inside the European Union only' });
  return list;
}

function reference(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function jsonContent(schema: string, example?: unknown): object {
  return { [JSON_MEDIA]: { schema: reference(schema), ...(example === undefined ? {} : { example }) } };
}

const RATE_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

function headerReferences(names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Error answers, those of one status as one response with its messages. */
function errorResponses(errors: readonly WireError[]): Record<string, object> {
  const responses: Record<string, object> = {};
  for (const status of new Set(errors.map((error) => WIRE_ERRORS[error].status))) {
    const described = errors.map((error) => WIRE_ERRORS[error]).filter((error) => error.status === status);
    responses[status] = {
      description: described.map(({ message }) => message).join(' · '),
      ...(status === 429 ? { headers: headerReferences([...RATE_HEADERS, 'Retry-After']) } : {}),
      content: jsonContent('Error', { error: described[0]!.message }),
    };
  }
  return responses;
}

function success(description: string, schema: string): object {
  return {
    description,
    headers: headerReferences([...RATE_HEADERS, 'X-Database-Release', 'X-Database-Age', 'X-Served-By']),
    content: jsonContent(schema),
  };
}

const KEY_ERRORS = ['key_twice', 'key_missing', 'key_invalid', 'rate_exceeded', 'internal', 'no_database'] as const;

function lookupOperation(operationId: string, summary: string, description: string, parameters: object[] = []): object {
  return {
    operationId,
    summary,
    description,
    parameters,
    responses: {
      200: success('The result. An address without a country has nulls.', 'LookupResult'),
      ...errorResponses([...(parameters.length > 0 ? (['invalid_address'] as const) : []), ...KEY_ERRORS]),
    },
  };
}

function unkeyedOperation(operationId: string, summary: string, schema: string, errors: WireError[] = []): object {
  return {
    operationId,
    summary,
    security: [],
    responses: { 200: { description: 'Yes.', content: jsonContent(schema) }, ...errorResponses(errors) },
  };
}

/** Builds the document. */
export function openApiDocument(baseUrls: BaseUrls): object {
  const { version, license } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as Record<string, string>;
  // The schemas refer to each other where they stand; here they stand elsewhere.
  const schemas = JSON.parse(
    JSON.stringify(wireSchema().$defs).replaceAll('"#/$defs/', '"#/components/schemas/'),
  ) as object;
  const self = 'The address is the one that the request comes from: usually the IPv6 address of a caller that has one.';
  return {
    openapi: '3.1.0',
    info: {
      title: 'ipatlas lookup API',
      version,
      description: 'Country and European Union membership of IPv4 and IPv6 addresses.',
      license: { name: license, identifier: license },
    },
    servers: servers(baseUrls),
    security: [{ header: [] }, { query: [] }],
    paths: {
      '/api/lookup/{ip}': {
        get: lookupOperation('lookup', 'Look an address up', 'IPv6 stands in the path as it is.', [
          {
            name: 'ip',
            in: 'path',
            required: true,
            description: 'IPv4 in dotted decimal, or IPv6 in full or shortened.',
            schema: { type: 'string' },
            examples: { ipv4: { value: '8.8.8.8' }, ipv6: { value: '2001:4860:4860::8888' } },
          },
        ]),
      },
      '/api/lookup/': { get: lookupOperation('lookupSelf', 'Look the own address up', self) },
      '/api/batch': {
        post: {
          operationId: 'batch',
          summary: 'Look many addresses up',
          description: `Up to ${MAX_BATCH} addresses. Each counts one against the rate limit.`,
          requestBody: { required: true, content: jsonContent('BatchRequest') },
          responses: {
            200: success('A result for each string.', 'BatchResponse'),
            ...errorResponses([
              'too_many',
              'body_empty',
              'body_not_json',
              'body_not_array',
              'body_not_strings',
              ...KEY_ERRORS,
              'body_too_large',
              'not_json_type',
            ]),
          },
        },
      },
      '/healthz': { get: unkeyedOperation('health', 'Is the server alive?', 'Health') },
      '/readyz': {
        get: unkeyedOperation('readiness', 'Is a database loaded?', 'Readiness', ['no_database', 'stopping']),
      },
    },
    components: {
      securitySchemes: {
        header: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The recommended way.' },
        query: { type: 'apiKey', in: 'query', name: KEY_PARAMETER, description: 'Case-sensitive. Never both at once.' },
      },
      headers: {
        'X-RateLimit-Limit': { description: 'Addresses a minute for this key.', schema: { type: 'integer' } },
        'X-RateLimit-Remaining': { description: 'Addresses left in this window.', schema: { type: 'integer' } },
        'X-RateLimit-Reset': { description: 'When the window ends, in Unix seconds.', schema: { type: 'integer' } },
        'Retry-After': { description: 'Seconds until the window ends.', schema: { type: 'integer' } },
        'X-Database-Age': {
          description: 'Age of its data in seconds: the time since its as-of date began.',
          schema: { type: 'integer', minimum: 0 },
        },
        'X-Database-Release': { description: 'Id of the release that answered.', schema: { type: 'string' } },
        'X-Served-By': { description: 'The region, where the server has one.', schema: { type: 'string' } },
      },
      schemas,
    },
  };
}
