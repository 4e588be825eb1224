/**
 * Tables with a header line: CSV and TSV as in RFC 4180, with `\n` or `\r\n`; a quote inside an unquoted cell is literal.
 * The columns of the result are appended. Each record keeps its bytes, quotes and line ending.
 */
import { AtlasError } from '../../errors.js';
import type { FieldRequest } from '../options.js';
import { passesOthers } from '../query.js';
import {
  asByteText,
  BYTE_ORDER_MARK,
  bytesToText,
  type FormatContext,
  type FormatEnricher,
  textToBytes,
} from './format.js';
import { RecordReader } from './records.js';
import { cellResults, cellText, MISSING, recordQuery } from './results.js';

/** Returns the column that a field names. In a table, the dots of a path are part of the name. */
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

/** Splits a record before its line ending. */
function splitEnding(record: string): [body: string, ending: string] {
  if (!record.endsWith('\n')) return [record, ''];
  const at = record.length - (record.endsWith('\r\n') ? 2 : 1);
  return [record.slice(0, at), record.slice(at)];
}

/** Returns whether a record is only a line ending or a byte order mark, or both. */
function isBlank(record: string): boolean {
  const text = record.startsWith(BYTE_ORDER_MARK) ? record.slice(BYTE_ORDER_MARK.length) : record;
  return text === '\n' || text === '\r\n' || (text === '' && record !== '');
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** The header of the first input. */
interface TableHeader {
  names: string[];
  /** For each field, the index of its column. */
  fieldColumns: number[];
}

/**
 * Creates the enricher of tables. All inputs are one table: the header of the first input is written, those of the others
 * must be equal and are left out. A record with more or fewer cells than the header is an invalid line. Blank lines are
 * passed on.
 *
 * @param delimiter `,` or a tab
 */
export function tableFormat(context: FormatContext, delimiter: ',' | '\t'): FormatEnricher {
  const { options, counts } = context;
  const { query } = options;
  const resultCells = cellResults(context, delimiter);
  const isPassedOn = query === undefined ? undefined : recordQuery(context, query);
  const format = { newline: '\n', enrich };
  let tableHeader: TableHeader | undefined;

  /** Returns the header's cells for the results. */
  function resultColumns(names: string[], input: string): string {
    if (query !== undefined) return '';
    const added = options.fields.flatMap(({ name }) => options.add.map((part) => `${name}_${part}`));
    const duplicate = added.find((name) => names.includes(name));
    if (duplicate !== undefined) {
      throw new AtlasError(
        'E_USAGE',
        `${input} already has a column ${JSON.stringify(duplicate)}; choose another name with --field PATH=NAME`,
      );
    }
    return asByteText(added.map((name) => delimiter + cellText(name, delimiter)).join(''));
  }

  function processHeader(names: string[], record: string, input: string): string {
    if (tableHeader === undefined) {
      tableHeader = { names, fieldColumns: options.fields.map((field) => findColumn(field, names, input)) };
      const [body, ending] = splitEnding(record);
      if (ending !== '') format.newline = ending;
      return body + resultColumns(names, input) + ending;
    }
    if (JSON.stringify(names) !== JSON.stringify(tableHeader.names)) {
      throw new AtlasError(
        'E_BAD_INPUT',
        `${input} has the columns ${names.join(', ')}, but the input before it ${tableHeader.names.join(', ')}; ` +
          'the inputs of one run must have the same columns',
      );
    }
    return '';
  }

  function processRecord(cells: string[], record: string, { fieldColumns }: TableHeader): string {
    counts.lines++;
    const values = fieldColumns.map((column) => (cells[column] === '' ? MISSING : cells[column]!));
    if (isPassedOn !== undefined) return isPassedOn(values) ? record : '';
    const [body, ending] = splitEnding(record);
    return body + values.map(resultCells).join('') + ending;
  }

  /** @param isNew false for a further part of a line that came in parts */
  function processInvalid(record: string, problem: string, isNew = true): string {
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

    function process(cells: string[], record: string): string {
      if (isBlank(record)) {
        counts.lines++;
        return query === undefined || passesOthers(query) ? record : '';
      }
      if (isHeader) {
        isHeader = false;
        return processHeader(cells, record, input);
      }
      const { names } = tableHeader!;
      if (cells.length === names.length) return processRecord(cells, record, tableHeader!);
      return processInvalid(
        record,
        `${input}, line ${line}: the record has ${cells.length} cells, but the header ${names.length}`,
      );
    }

    const reader = new RecordReader(delimiter, {
      onRecord(cells, bytes) {
        const record = bytesToText(bytes);
        out.push(process(cells, record));
        line += countNewlines(record);
      },
      onUnreadable(bytes, reason, isNew) {
        const record = bytesToText(bytes);
        const problem = `${input}, line ${line}: ${reason}`;
        if (isHeader) throw new AtlasError('E_BAD_INPUT', `${problem}, so there is no header`);
        out.push(processInvalid(record, problem, isNew));
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
      // If a record caused an error, the records before it are still written.
      yield textToBytes(out.join(''));
    }
  }

  return format;
}
