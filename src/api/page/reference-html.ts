/**
 * The reference of the API as HTML, made from the OpenAPI document.
 *
 * The renderers that others make (Swagger UI, Redoc, RapiDoc, Scalar) need scripts of 200 to 900 kB and inline styles, which the policy
 * of the pages forbids, or have buttons within buttons. A document of our own needs a part of what OpenAPI has, and no script.
 */
import { type Html, html } from '../../html.js';
import { frame } from './frame.js';

/** What this page reads of a JSON Schema. */
interface Schema {
  $ref?: string;
  title?: string;
  description?: string;
  type?: string | string[];
  format?: string;
  const?: unknown;
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  maxItems?: number;
  additionalProperties?: Schema | false;
  oneOf?: Schema[];
  examples?: unknown[];
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  security?: object[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema?: Schema }> };
  responses: Record<string, { description: string; headers?: object; content?: Record<string, { schema?: Schema }> }>;
}

/** What this page reads of an OpenAPI document. */
export interface OpenApi {
  info: { title: string; version: string; description: string };
  servers: { url: string; description?: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    headers: Record<string, { description: string }>;
  };
}

const code = (text: string): Html => html`<code>${text}</code>`;

/** Returns a text whose parts in backticks are code. */
const prose = (text: string): Html =>
  html`${text.split('`').map((part, at) => (at % 2 === 0 ? html`${part}` : code(part)))}`;

/** Returns items with something between them. */
function joined(items: readonly Html[], between: string): Html {
  return html`${items.map((item, index) => (index === 0 ? item : html`${between}${item}`))}`;
}

/** Returns the last part of a reference within the document. */
function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** Returns the type of a value, with a link if it is one of the schemas. */
function typeOf(schema: Schema): Html {
  const { $ref, const: only, enum: values, type, format, items, additionalProperties, oneOf } = schema;
  if ($ref !== undefined) return html`<a href="#schema-${nameOf($ref)}">${nameOf($ref)}</a>`;
  if (oneOf !== undefined) return joined(oneOf.map(typeOf), ' or ');
  if (only !== undefined) return code(JSON.stringify(only));
  if (values !== undefined)
    return joined(
      values.map((value) => code(JSON.stringify(value))),
      ' or ',
    );
  if (items !== undefined) return html`array of ${typeOf(items)}`;
  if (additionalProperties) return html`object with values ${typeOf(additionalProperties)}`;
  const types = Array.isArray(type) ? type.join(' or ') : (type ?? 'anything');
  return html`${format === undefined ? types : `${types} (${format})`}`;
}

function table(heads: readonly string[], rows: readonly Html[], label: string): Html {
  return html`<div class="panel scroll" role="region" aria-label="${label}" tabindex="0"><table class="fields"><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

/** Returns the rows of an object's members, those of objects in it included. */
function members({ properties = {}, required = [] }: Schema, prefix = ''): Html[] {
  return Object.entries(properties).flatMap(([name, member]) => {
    const { description, examples } = member;
    const example = examples?.[0] === undefined ? undefined : html` Example: ${code(JSON.stringify(examples[0]))}`;
    const row = html`<tr><th scope="row">${code(prefix + name)}</th><td>${typeOf(member)}${required.includes(name) ? '' : ', optional'}</td><td>${prose(description ?? '')}${example}</td></tr>`;
    const inner = member.items ?? member;
    return [row, ...members(inner, `${prefix}${name}${member.items === undefined ? '' : '[]'}.`)];
  });
}

function schemaSection([name, schema]: [string, Schema]): Html {
  const { title, description, properties, examples } = schema;
  return html`<h3 id="schema-${name}">${name}</h3>
<p>${prose(description === undefined ? (title ?? '') : `${title ?? ''}. ${description}`)}</p>
${properties === undefined ? html`<p>${typeOf(schema)}${schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`}</p>` : table(['Member', 'Type', 'Meaning'], members(schema), `Members of ${name}`)}
${examples?.[0] === undefined ? undefined : html`<pre tabindex="0"><code>${JSON.stringify(examples[0], null, 2)}</code></pre>`}`;
}

/** Returns the type of the content, with its schema if it has one. */
function contentOf(content: Record<string, { schema?: Schema }> | undefined): Html {
  return joined(
    Object.entries(content ?? {}).map(([media, { schema }]) => (schema === undefined ? code(media) : typeOf(schema))),
    ' or ',
  );
}

function operationSection(path: string, method: string, operation: Operation): Html {
  const { operationId, summary, description, security, parameters = [], requestBody, responses } = operation;
  const parameterRows = parameters.map(
    ({ name, in: place, required, description: meaning, schema }) =>
      html`<tr><th scope="row">${code(name)}</th><td>${place}${required ? '' : ', optional'}, ${typeOf(schema ?? {})}</td><td>${prose(meaning ?? '')}</td></tr>`,
  );
  const responseRows = Object.entries(responses).map(
    ([status, { description: meaning, content }]) =>
      html`<tr><th scope="row">${code(status)}</th><td>${prose(meaning)}</td><td>${contentOf(content)}</td></tr>`,
  );
  return html`<h3 id="${operationId}">${summary}</h3>
<p class="route"><code><strong>${method.toUpperCase()}</strong> ${path}</code>${security?.length === 0 ? ' No key is needed.' : ''}</p>
<p>${prose(description)}</p>
${parameterRows.length === 0 ? undefined : table(['Parameter', 'Where, type', 'Meaning'], parameterRows, `Parameters: ${summary}`)}
${requestBody === undefined ? undefined : html`<p>Body: ${contentOf(requestBody.content)}, as JSON.</p>`}
${table(['Status', 'Meaning', 'Body'], responseRows, `Responses: ${summary}`)}`;
}

/** Returns the reference as headings of the levels 2 and 3, for a page with a heading of its own. */
export function referenceHtml(document: OpenApi): Html {
  const { info, tags, paths, components } = document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const ofTag = (name: string) => operations.filter(({ operation }) => operation.tags.includes(name));
  const headers = Object.entries(components.headers).map(
    ([name, { description }]) => html`<tr><th scope="row">${code(name)}</th><td>${prose(description)}</td></tr>`,
  );
  return html`<p class="lead">${prose(info.description.split('\n')[0] ?? '')} Version ${info.version}. The <a href="openapi.json">OpenAPI document</a> is for programs.</p>
<p>A key is sent once, as the header <code>X-API-Key</code> (recommended) or the query parameter <code>apikey</code>.</p>
<ul class="contents">${operations.map(({ path, method, operation }) => html`<li><a href="#${operation.operationId}"><code>${method.toUpperCase()} ${path}</code></a> ${operation.summary}</li>`)}</ul>
${tags.map(
  ({ name, description }) => html`<h2 id="tag-${name}">${name}</h2>
<p class="lead">${prose(description)}</p>
${ofTag(name).map(({ path, method, operation }) => operationSection(path, method, operation))}`,
)}
<h2 id="headers">Headers of responses</h2>
${table(['Header', 'Meaning'], headers, 'Headers')}
<h2 id="schemas">Schemas</h2>
${Object.entries(components.schemas).map(schemaSection)}`;
}

/** Returns the page. */
export function docsHtml(document: OpenApi, assets: string): string {
  return frame(
    {
      title: 'ipatlas: reference of the API',
      description: 'Every request and response of the lookup API, with parameters, statuses and schemas.',
      assets,
      path: 'docs',
    },
    html`<div class="reference"><h1>Reference of the API</h1>\n${referenceHtml(document)}</div>`,
  );
}
