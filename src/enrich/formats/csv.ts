/**
 * Tables with a header line: CSV and TSV (RFC 4180, with `\n` or `\r\n`, and a quote inside a bare cell taken as it is).
 * The answer's columns are appended; each record keeps its own bytes, quoting and line ending.
 */
import { AtlasError } from '../../errors.js';
import type { FieldRequest } from '../options.js';
import { asByteText, BYTE_ORDER_MARK, bytesToText, type Format, type FormatContext, textToBytes } from './format.js';
import { RecordReader } from './records.js';
import { cellAnswerer, cellText, MISSING } from './results.js';

/** The column that a field names: a path's dots belong to the column's name. */
function columnName({ path }: FieldRequest): string {
  return path.join('.');
}

function findColumn(field: FieldRequest, header: readonly string[], input: string): number {
  const name = columnName(field);
  const index = header.indexOf(name);
  if (index >= 0 && header.indexOf(name, index + 1) < 0) return index;
  const problem = index < 0 ? 'has no column' : 'has more than one column';
  throw new AtlasError(
    'E_USAGE',
    `${input} ${problem} ${JSON.stringify(name)}; its columns are ${header.join(', ')}. Choose one with --field`,
  );
}

/** Splits a record's text in front of its line ending. */
function splitEnding(record: string): [body: string, ending: string] {
  if (!record.endsWith('\n')) return [record, ''];
  const at = record.length - (record.endsWith('\r\n') ? 2 : 1);
  return [record.slice(0, at), record.slice(at)];
}

/** Whether a record is nothing but a line ending, a byte order mark aside. */
function isBlank(record: string): boolean {
  return record === '\n' || record === '\r\n' || record === BYTE_ORDER_MARK;
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** What the first header says: the columns, and which of them the fields are. */
interface Layout {
  header: string[];
  fields: number[];
}

/**
 * @param separator `,` or a tab
 * @returns the format. All inputs are one table: the header of the first is written, those of the others must be alike
 *   and are left out. A record with more or fewer cells than the header is an invalid line. Blank lines pass
 */
export function tableFormat(context: FormatContext, separator: ',' | '\t'): Format {
  const { options, counts } = context;
  const answer = cellAnswerer(context, separator);
  const format = { newline: '\n', enrich };
  let layout: Layout | undefined;

  /** The header's cells for the answers. */
  function answerColumns(header: string[], input: string): string {
    const names = options.fields.flatMap(({ name }) => options.add.map((part) => `${name}_${part}`));
    const taken = names.find((name) => header.includes(name));
    if (taken !== undefined) {
      throw new AtlasError(
        'E_USAGE',
        `${input} has a column ${JSON.stringify(taken)} already; choose another name with --field PATH=NAME`,
      );
    }
    return asByteText(names.map((name) => separator + cellText(name, separator)).join(''));
  }

  function takeHeader(header: string[], record: string, input: string): string {
    if (layout === undefined) {
      layout = { header, fields: options.fields.map((field) => findColumn(field, header, input)) };
      const [body, ending] = splitEnding(record);
      if (ending !== '') format.newline = ending;
      return body + answerColumns(header, input) + ending;
    }
    if (JSON.stringify(header) !== JSON.stringify(layout.header)) {
      throw new AtlasError(
        'E_BAD_INPUT',
        `${input} has the columns ${header.join(', ')}, but the input before it ${layout.header.join(', ')}; ` +
          'the inputs of one run must have the same columns',
      );
    }
    return '';
  }

  function takeRecord(cells: string[], record: string, { fields }: Layout): string {
    counts.lines++;
    const [body, ending] = splitEnding(record);
    return body + fields.map((column) => answer(cells[column] === '' ? MISSING : cells[column]!)).join('') + ending;
  }

  /** @param isNew false for a further piece of a line that came in pieces */
  function takeInvalid(record: string, problem: string, isNew = true): string {
    context.reject(textToBytes(record));
    if (isNew) {
      counts.lines++;
      counts.invalid_line++;
    }
    if (options.onInvalid === 'fail') throw new AtlasError('E_BAD_INPUT', problem);
    return options.onInvalid === 'keep' ? record : '';
  }

  async function* enrich(input: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const out: string[] = [];
    let line = 1;
    let isHeader = true;

    function take(cells: string[], record: string): string {
      if (isBlank(record)) {
        counts.lines++;
        return record;
      }
      if (isHeader) {
        isHeader = false;
        return takeHeader(cells, record, input);
      }
      const { header } = layout!;
      if (cells.length === header.length) return takeRecord(cells, record, layout!);
      return takeInvalid(
        record,
        `${input}, line ${line}: the record has ${cells.length} cells, but the header ${header.length}`,
      );
    }

    const reader = new RecordReader(separator, {
      onRecord(cells, bytes) {
        const record = bytesToText(bytes);
        out.push(take(cells, record));
        line += countNewlines(record);
      },
      onUnreadable(bytes, reason, isNew) {
        const record = bytesToText(bytes);
        const problem = `${input}, line ${line}: ${reason}`;
        if (isHeader) throw new AtlasError('E_BAD_INPUT', `${problem}, so there is no header`);
        out.push(takeInvalid(record, problem, isNew));
        line += countNewlines(record);
      },
    });
    try {
      for await (const chunk of chunks) {
        await reader.read(chunk);
        yield textToBytes(out.splice(0).join(''));
      }
      await reader.end();
    } finally {
      // Where a record made it fail, the ones in front of it come out.
      yield textToBytes(out.join(''));
    }
  }

  return format;
}
