/** schemas/wire.schema.json and, from it and the routes, the OpenAPI 3.1 document. */
import { readFileSync } from 'node:fs';
import type { Manifest } from '../database/release.js';
import { WIRE_ERRORS, type WireError } from '../errors.js';
import { packageFile } from '../package-root.js';
import { INCLUDABLE, KEY_PARAMETER } from './include.js';
import { FORWARD_AUTH, type Operation, ROUTES, type Route, TAGS } from './routes.js';

const WIRE_SCHEMA_ID = 'wire';

/** The schemas by name. */
interface WireSchema {
  $id: string;
  $defs: Record<string, object>;
}

/** Reads the file. Its `$schema` is left out: Fastify's validator knows the keywords, but not the name of the dialect. */
export function wireSchema(): WireSchema {
  const { $schema: _, ...schema } = JSON.parse(
    readFileSync(packageFile('schemas/wire.schema.json'), 'utf8'),
  ) as WireSchema & { $schema: string };
  return schema;
}

/** Returns a reference to one of the schemas, for Fastify. */
export function definition(name: string): { $ref: string } {
  return { $ref: `${WIRE_SCHEMA_ID}#/$defs/${name}` };
}

/** Where clients find the service, with or without `/api/` at the end: the EU address is published with it. */
export interface BaseUrls {
  default?: string | undefined;
  eu?: string | undefined;
}

const JSON_MEDIA = 'application/json';

/** A base address without `/api`, which is part of the paths. */
export function serverUrl(url: string): string {
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

function headersObject(names: readonly string[]): object {
  if (names.length === 0) return {};
  return { headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])) };
}

/** The responses of some errors, one for each status. */
function errorResponses(errors: readonly WireError[], headers: readonly string[] = []): Record<string, object> {
  const responses: Record<string, object> = {};
  for (const status of new Set(errors.map((error) => WIRE_ERRORS[error].status))) {
    const messages = errors.map((error) => WIRE_ERRORS[error]).filter((error) => error.status === status);
    responses[status] = {
      description: messages.map(({ message }) => message).join(' · '),
      ...headersObject(status === 429 ? [...RATE_HEADERS, 'Retry-After'] : headers),
      content: jsonContent('Error', { error: messages[0]!.message }),
    };
  }
  return responses;
}

/** Errors of every route that needs a key. */
const KEY_ERRORS = [
  'key_twice',
  'key_missing',
  'key_bearer',
  'key_invalid',
  'origin_refused',
  'rate_exceeded',
  'internal',
  'keys_unavailable',
  'no_database',
] as const;

const LOOKUP_HEADERS = [...RATE_HEADERS, 'X-Database-Release', 'X-Database-Age', 'X-Served-By'];

const PATH_PARAMETER = { in: 'path', required: true, schema: { type: 'string' } };

const PATH_PARAMETERS = {
  ip: {
    ...{ name: 'ip', ...PATH_PARAMETER },
    description: 'IPv4 in dotted decimal, or IPv6 in full or compressed.',
    examples: { ipv4: { value: '8.8.8.8' }, ipv6: { value: '2001:4860:4860::8888' } },
  },
  name: { name: 'name', ...PATH_PARAMETER, description: 'The name of a rule.', example: 'shop' },
};

const INCLUDE_PARAMETER = {
  name: 'include',
  in: 'query',
  required: false,
  description:
    'Further members of each result: who announces the address (`asn`, `as_name`), the largest block around it with the same result (`network`), the code of the continent, whether the country is in the European Economic Area (`is_eea`), and what kind of network it is (`anycast`, `kind`, `operator`).',
  style: 'form',
  explode: false,
  example: ['asn', 'as_name'],
};

/** Returns the parameter with the names of labels, too. */
function includeObject(labels: readonly string[]): object {
  const names = { type: 'string', enum: [...INCLUDABLE, ...labels] };
  return { ...INCLUDE_PARAMETER, schema: { type: 'array', items: names } };
}

const DAY_PARAMETER = {
  name: 'at',
  in: 'query',
  required: false,
  description:
    'A day (UTC), whose answers are wanted: those of the release that was current at its end, and the membership in the European Union of that day. By default those of now.',
  schema: { type: 'string', format: 'date' },
  example: '2026-01-31',
};

const LANGUAGE_PARAMETER = {
  name: 'lang',
  in: 'query',
  required: false,
  description:
    "The language of the countries' names, a tag (BCP 47): those of CLDR in the server's version of Node. By default English.",
  schema: { type: 'string' },
  example: 'de',
};

function contentObject({ schema, media }: Operation['response']): object {
  if (schema !== undefined) return { content: jsonContent(schema) };
  return media === undefined ? {} : { content: { [media]: {} } };
}

function operationObject(operation: Operation, needsKey: boolean, labels: readonly string[]): object {
  const { id, tag, summary, description, parameter, isLookup, request, response, headers, errors } = operation;
  const parameters = [
    ...(parameter === undefined ? [] : [PATH_PARAMETERS[parameter]]),
    ...(isLookup ? [includeObject(labels), DAY_PARAMETER, LANGUAGE_PARAMETER] : []),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(needsKey ? {} : { security: [] }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(request === undefined ? {} : { requestBody: { required: true, content: jsonContent(request) } }),
    responses: {
      [response.status ?? 200]: {
        description: response.description,
        ...headersObject(isLookup ? LOOKUP_HEADERS : (headers ?? [])),
        ...contentObject(response),
      },
      ...errorResponses(needsKey ? [...errors, ...KEY_ERRORS] : errors, headers),
    },
  };
}

function paths(labels: readonly string[]): Record<string, object> {
  const described: Record<string, object> = {};
  for (const { path, method = 'get', needsKey = false, operation } of [...Object.values<Route>(ROUTES), FORWARD_AUTH]) {
    if (operation === undefined) continue;
    const name = path.replace(/:(\w+)/g, '{$1}');
    described[name] = { ...described[name], [method.toLowerCase()]: operationObject(operation, needsKey, labels) };
  }
  return described;
}

function headerObject(description: string, type = 'string'): object {
  return { description, schema: { type } };
}

/** Returns the sources of a release with their licenses, as `GET /attribution` answers. */
export function attributionOf({ id, as_of, data_date, inputs }: Manifest): object {
  return {
    release: id,
    as_of,
    data_date,
    sources: inputs.map(({ id, version, license, attribution, data_date, data_date_evidence }) => {
      return { id, version, license, attribution, data_date, data_date_evidence };
    }),
  };
}

/** Returns the part of the description that names the sources, as Markdown. */
function sourcesText({ inputs }: Manifest): string {
  // Without the characters that mean something in Markdown and HTML.
  const plain = (text: string): string => text.replace(/[\\`*_{}[\]()<>#|~!&]+/g, ' ').replace(/\s+/g, ' ');
  const lines = inputs.map(({ id, license, attribution }) => `- ${plain(`${id}, ${license}: ${attribution}`)}`);
  return lines.length === 0 ? '' : `\n\nThe data is made from these sources:\n\n${lines.join('\n')}`;
}

/**
 * Builds the document.
 *
 * @param manifest of the release whose sources it names; none if there is no release
 * @param labels the names of the labels that may be asked for
 */
export function openApiDocument(baseUrls: BaseUrls, manifest?: Manifest, labels: readonly string[] = []): object {
  const text = readFileSync(packageFile('package.json'), 'utf8');
  const { version, license, homepage } = JSON.parse(text) as Record<string, string>;
  // The schemas refer to each other by their place in the file, which is another one here.
  const schemas = JSON.parse(JSON.stringify(wireSchema().$defs).replaceAll('"#/$defs/', '"#/components/schemas/')) as {
    LookupResult: { properties: Record<string, object> };
  };
  for (const label of labels) {
    const description = `Only with include=${label}: a label that the operator gave the address, or null.`;
    schemas.LookupResult.properties[label] = { type: ['string', 'null'], description };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'ipatlas lookup API',
      version,
      description: `Country and European Union membership of IPv4 and IPv6 addresses.${manifest === undefined ? '' : sourcesText(manifest)}`,
      ...(manifest === undefined ? {} : { 'x-attribution': attributionOf(manifest) }),
      contact: { name: 'ipatlas', url: homepage },
      license: { name: license, identifier: license },
    },
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    servers: servers(baseUrls),
    security: [{ header: [] }, { query: [] }],
    paths: paths(labels),
    components: {
      securitySchemes: {
        header: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'Recommended.' },
        query: {
          type: 'apiKey',
          in: 'query',
          name: KEY_PARAMETER,
          description: 'Case-sensitive. Not together with the header.',
        },
      },
      headers: {
        'X-RateLimit-Limit': headerObject('Addresses a minute for this key.', 'integer'),
        'X-RateLimit-Remaining': headerObject('Addresses that are left now.', 'integer'),
        'X-RateLimit-Reset': headerObject(
          'When all addresses are free again if no more are looked up, in Unix seconds.',
          'integer',
        ),
        'Retry-After': headerObject('Seconds until the request may succeed.', 'integer'),
        'X-Database-Age': {
          description: 'Age of the data in seconds: the time since the day that it is from began, in UTC.',
          schema: { type: 'integer', minimum: 0 },
        },
        'X-Database-Release': headerObject('Id of the release that answered.'),
        'X-Country-Code': headerObject('The code of the country of the client; empty if it is not known.'),
        'X-In-EU': headerObject('`true` or `false`; empty without a country.'),
        'X-ASN': headerObject('Number of the autonomous system; empty if unknown.'),
        'X-Served-By': headerObject('The region, if the server has one.'),
      },
      schemas,
    },
  };
}
