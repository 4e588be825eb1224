import { describe, expect, it } from 'vitest';
import { flagsOf } from '../../src/enrich/detection.js';
import { findFields, isDecided } from '../../src/enrich/find-fields.js';
import { addressNames } from '../../src/enrich/known-logs.js';

const find = (text: string, given = {}) => {
  const found = findFields(text, true, given, addressNames());
  return found ? flagsOf(found) : undefined;
};

describe('findFields', () => {
  it.each([
    ['id,server_ip,client_ip\n1,1.1.1.1,8.8.8.8\n', '--format csv --field client_ip'],
    ['name|address\nbob|8.8.8.8\n', "--format csv --delimiter '|' --field address"],
    ['user\tip\nbob\t8.8.8.8\n', '--format tsv --field ip'],
    ['1,foo,8.8.8.8\n2,bar,9.9.9.9\n', '--format csv --field 3 --no-header'],
    ['ip\n8.8.8.8\n', '--format csv --field ip'],
    ['# a\n# id,src\n1,8.8.8.8\n# b, c\n2,9.9.9.9\n', '--format csv --field src'],
    ['# x\n8.8.8.8,1\n9.9.9.9,2\n', '--format csv --field 1 --no-header'],
    ['{"a":"x","log":"from 8.8.8.8","msg":"to 9.9.9.9"}\n', '--format jsonl --field log --in-text'],
    ['8.8.8.8\n9.9.9.9:80\n1.0.0.0/24\n', '--format list --lenient'],
    ['{"x-forwarded-for":"8.8.8.8","peer":"9.9.9.9"}\n', '--format jsonl --field peer'],
    ['{"client.ip":"8.8.8.8"}\n', "--format jsonl --field 'client\\.ip'"],
    ['{"data":{"rows":[{"remoteIp":"8.8.8.8:443"}]}}', '--format json --items data.rows --field remoteIp --lenient'],
    ['[\n {"remoteIp":"8.8.8.8"},\n {"remoteIp":"8.8', '--format json --field remoteIp'],
    ['n=1 dst=8.8.8.8 src=9.9.9.9\n', '--format logfmt --field src'],
    ['INFO login from 8.8.8.8 ok\nno address\n', '--format text'],
    // Several names of the client; a record has the first that it has.
    ['{"a|b_ip":"8.8.8.8"}\n', "--format jsonl --field 'a\\|b_ip'"],
    // A shipper's name beside the text of a message, and without one.
    ['{"source_ip":"1.1.1.1","message":"from 8.8.8.8"}\n', '--format jsonl --field message --in-text'],
    ['{"source":{"ip":"8.8.8.8"},"message":"from 1.1.1.1"}\n', '--format jsonl --field source.ip'],
    ['{"source_ip":"8.8.8.8","message":"hello"}\n', '--format jsonl --field source_ip'],
    ['source,message\n1.1.1.1,from 8.8.8.8\n1.1.1.1,"a, from 8.8.8.8"\n', '--format csv --field message --in-text'],
    // What writes or carries the record is not the client; text of any name, in arrays too, if nothing else has an address.
    ['{"labels":{"vm_ip":"1.1.1.1"},"textPayload":"from 8.8.8.8"}\n', '--format jsonl --field textPayload --in-text'],
    ['{"log":{"source":{"address":"1.1.1.1"}},"msg":"from 8.8.8.8"}\n', '--format jsonl --field msg --in-text'],
    ['{"_source":{"host":{"ip":["::1"]},"msg":"at 8.8.8.8"}}\n', '--format jsonl --field _source.msg --in-text'],
    ['{"host":"1.1.1.1","lines":["x","from 8.8.8.8"]}\n', "--format jsonl --field 'lines[]' --in-text"],
    ['{"x":["at 8.8.8.8"],"url":"http://1.1.1.1/a"}\n', "--format jsonl --field 'x[]' --in-text"],
    ['{"key":"1.1.1.1","value":"from 8.8.8.8"}\n', '--format jsonl --field value --in-text'],
    ['{"key":"8.8.8.8","value":"seen 1.1.1.1"}\n', '--format jsonl --field key'],
    ['id;"Name, please?";"IP\nnow"\n1;x;8.8.8.8\n', "--format csv --delimiter ';' --field 'IP\nnow'"],
    ['At [UTC],Host,Content\n1,1.1.1.1,from 8.8.8.8\n', '--format csv --field Content --in-text'],
    ['{"actorIpAddress":"8.8.8.8"}\n{"ClientIP":"::1"}\n', "--format jsonl --field 'ClientIP|actorIpAddress'"],
    // The other end is not the client, whose names are names of hosts.
    ['{"client":"web-1","dst":"1.1.1.1"}\n', '--format jsonl --field client'],
    ['user,ip\nann,web-1\nbob,8.8.8.8\neve,00:1a:2b:3c:4d:5e\n', '--format csv --field ip'],
    // One object in a line is a line, unless an array has its addresses.
    ['{"src_ip":"8.8.8.8","answers":[{"rdata":"1.1.1.1"}]}\n', '--format jsonl --field src_ip'],
    ['{"n":1,"hits":[{"src":"8.8.8.8"},{"src":"1.1.1.1"}]}\n', '--format json --items hits --field src'],
    ['{"rows":[{"message":"from 8.8.8.8"}]}\n', '--format json --items rows --field message --in-text'],
    // Tables after other lines, with quotes that do not close, with an address in a larger cell.
    ['sep=;\nname;ip\nann;8.8.8.8\n', "--format csv --delimiter ';' --field ip"],
    ['id,name,ip\n1,"ann,8.8.8.8\n2,bob,8.8.8.8\n3,eve,8.8.8.8\n', '--format csv --field ip'],
    ['name,seen\nann,at 8.8.8.8 (web)\nbob,at 8.8.8.8\n', '--format csv --field seen --in-text'],
    ['name,ip\nann,="8.8.8.8"\n', '--format csv --field ip --in-text'],
    ['"n=1","srcip=8.8.8.8"\n"n=2","srcip=9.9.9.9"\n', '--format csv --field 2 --no-header --in-text'],
    // What a user is called; what is beside a message, or says what carries it.
    ['{"user":{"name":"9.9.9.9"},"node":"8.8.8.8"}\n', '--format jsonl --field user.name'],
    // Objects one after the other, and arrays in arrays that hold the records.
    ['{"src":"8.8.8.8"}{"src":"1.1.1.1"}', '--format json-seq --field src'],
    ['{\n "src": "8.8.8.8"\n}\n', '--format json-seq --field src'],
    ['{"src":"8.8.8.8"},\n{"src":"1.1.1.1"}\n', '--format json-seq --field src'],
    ['{"src":"8.8.8.8"}\n{"src":"1.1.1.1"}{"src":"1.1.1.1"}\n', '--format json-seq --field src'],
    ['\x1e{"src":"8.8.8.8"}\n\x1e{"src":"8.8.8.8"}\n', '--format json-seq --field src'],
    ['{"a":[{"b":[{"src":"8.8.8.8"},{"src":"8.8.8.8"}]}]}\n', "--format json --items 'a[].b' --field src"],
    ['[[{"src":"8.8.8.8"}],[{"src":"8.8.8.8"}]]', "--format json --items '[][]' --field src"],
    [
      '{"all":[{"logs":[{"body":"login from 8.8.8.8"},{"body":"login from 8.8.4.4"}]}]}',
      "--format json --items 'all[].logs' --field body --in-text",
    ],
    // Text that has a delimiter, or not all pairs.
    ['| a | ip |\n|---|---|\n| x | 8.8.8.8 |\n', '--format text'],
    ['a b c CEF:0|x|20.0.0.1|y|from 8.8.8.8\na b c CEF:0|x|20.0.0.1|y|from 8.8.8.8\n', '--format text'],
    ['a=1 ip=8.8.8.8\nb=1 c=2 relay:9.9.9.9\n', '--format text'],
    ['<13>1 - a b - - [origin ip="8.8.8.8"] from 9.9.9.9\n', '--format text'],
    ['x, Device IP Address=8.8.8.8, Calling-Station-ID=9.9.9.9\n', '--format text'],
    ['{"msg":"from 8.8.8.8"} x\n{"msg":"from 9.9.9.9"} x\n', '--format text'],
    ['allow all;\ndeny 8.8.8.8;\ndeny 1.1.1.1;\n', '--format text'],
    ['event({"ip":"8.8.8.8"})\nevent({"ip":"9.9.9.9"})\n', '--format text'],
    // Other lines before or after a table, odd names of columns, directives, an array in some records, colors.
    ['L\nU,x\nCN,Real Address,n\na,8.8.8.8,1\nR\nV,CN\na,b\n', "--format csv --field 'Real Address'"],
    ['<b>t</b>,<b>ip</b>\n1,8.8.8.8\n', "--format csv --field '<b>ip</b>'"],
    ['#Fields: time src-ip dst-ip\n1 8.8.8.8 9.9.9.9\n', '--format w3c --field src-ip'],
    ['{"msg":"of 8.8.8.8"}\n{"msg":["a","of 9.9.9.9"]}\n', "--format jsonl --field 'msg|msg[]' --in-text"],
    ['{"client":"\\u001b[36m8.8.8.8\\u001b[0m","x":"9.9.9.9"}\n', '--format jsonl --field client --in-text'],
    ['{"client":"web.example (8.8.8.8)","x":"9.9.9.9"}\n', '--format jsonl --field client --in-text'],
    ['{"proxy":{"clientIp":"8.8.8.8"},"host":"9.9.9.9"}\n', '--format jsonl --field proxy.clientIp'],
    ['R,a,,\nName,n,m,IP\nb,1,2,8.8.8.8\nb,1,2,9.9.9.9\n', '--format csv --field IP'],
    ['{"_ip":"9.9.9.9","_line":"from 8.8.8.8"}\n', '--format jsonl --field _line --in-text'],
    ['<a tr="TCP|8.8.8.8|25" n="1"/>\n<a tr="TCP|8.8.8.8|25" n="1"/>\n', '--format text'],
    ['[x] "8.8.8.8, 1.1.1.1, 9.9.9.9" "y"\n', '--format text'],
  ])('finds what %j is', (text, flags) => {
    expect(find(text)).toBe(flags);
  });

  it.each(['', '\n', 'no address', '\0\x01 8.8.8.8', '{"a":1}\n', '{"ip":null}\n{"ip":"8.8.8.8","src":"9.9.9.9"}\n'])(
    'finds nothing in %j',
    (text) => {
      expect(find(text)).toBeUndefined();
    },
  );

  it.each([
    ['[["8.8.8.8"],[1]]', /arrays of values in place of objects; .* jq/],
    ['{"8.8.8.8":{"n":1},\n"1.1.1.1":{}}', /no field of its objects has an address .* --format json --items/],
    ['name,ip\n', /one line, the header of a table with the columns name, ip, and no records/],
    // Tabs in what may have been JSON would make something else of it.
    ['{"src":"8.8.8.8","n":NaN}\n', /looks like JSON and is not: .*jq/],
    ['{\n  // src\n  "src": "8.8.8.8"\n}\n', /looks like JSON/],
    ["[{'src': '8.8.8.8', 'n': None}]\n", /looks like JSON/],
    ['callback({"src":"8.8.8.8"});\n', /JSON in a script or after comments/],
    ['// a\nvar x = [\n {"src":"8.8.8.8"}\n];\n', /JSON in a script/],
    [')]}\'\n[{"src":"8.8.8.8"}]\n', /JSON in a script/],
    ['{"a":{"ip":"8.8.8.8"},"b":{"ip":"9.9.9.9"}}\n', /members of one object; .* jq -c '\.\[\]'/],
    ['{"a":["8.8.8.8","9.9.9.9"]}\n', /arrays of values/],
    ['{"a":[{"src":"8.8.8.8"}],"b":[{"src":"9.9.9.9"}]}\n', /several arrays, a and b/],
    ['[{"ip":"8.8.8.8"}]\n[{"ip":"9.9.9.9"}]\n', /several arrays one after the other/],
    ['"from 8.8.8.8"\n"from 9.9.9.9"\n', /JSON strings/],
    ['{"n":1,"a":[{"v":"8.8.8.8"},{"v":"x"}]}\n', /no field of its objects/],
    ['H,1\nD,8.8.8.8,x,y\nD,9.9.9.9,x,y\nT\n', /looks like a table/],
    ['\x1b[1;39m{\n  \x1b[0m"src": "8.8.8.8"\n}\n', /looks like JSON/],
  ])('refuses %j', (text, message) => {
    expect(() => find(text)).toThrow(
      expect.objectContaining({ code: 'E_BAD_INPUT', message: expect.stringMatching(message) }),
    );
  });

  it('says what has public addresses if the field has none', () => {
    const found = findFields('{"ip_address":"10.0.0.1","xff":"8.8.8.8"}\n', true, {}, addressNames());
    expect(found).toMatchObject({ field: ['ip_address'], publicElsewhere: "--field 'xff' --lenient" });
  });

  it('reads names of any length, and JSON that is cut or deep, in one pass', () => {
    expect(find(`{"${'.'.repeat(100_000)}":"8.8.8.8"}\n`)).toContain('--format jsonl');
    expect(find('['.repeat(100_000))).toBeUndefined();
    expect(find(`[${'[{}],'.repeat(100_000)}[{}]]`, { format: 'json' })).toBeUndefined();
    expect(find(`[{"src":"8.8.8.8","a":"${'x'.repeat(1000)}"},{"src":"8.8`)).toBe('--format json --field src');
  });

  it('keeps what a flag says', () => {
    expect(find('a,b\n8.8.8.8,9.9.9.9\n', { field: ['b'] })).toBe('--format csv --field b');
    expect(find('id,ip,src\n1,8.8.8.8,9.9.9.9\n', { format: 'csv' })).toBeUndefined();
    expect(find('ip,src\nx,9.9.9.9\n', { format: 'csv' })).toBeUndefined();
    expect(find('[{"ip":"8.8.8.8"},{"ip":"x","src":"9.9.9.9"}]', { format: 'json' })).toBeUndefined();
    expect(find('{"msg":"from 8.8.8.8"}\n', { format: 'jsonl' })).toBeUndefined();
    expect(find('id,src\n1,9.9.9.9\n', { format: 'csv' })).toBe('--format csv --field src');
  });

  it('does not choose a field by its name alone, nor versions', () => {
    expect([find('lib-1.2.3.4.jar'), find('a,version\nb,1.2.3.4\n')]).toEqual([undefined, undefined]);
    expect(find('{"client_ip":"web-1","peer":"8.8.8.8"}\n')).toBe('--format jsonl --field peer');
    expect(find('{"ips":["8.8.8.8","9.9.9.9"],"src":"1.1.1.1"}\n')).toBe("--format jsonl --field 'src|ips[]'");
    // One line of four has the better name.
    const events = ['client_ip', 'srcip', 'srcip', 'srcip']
      .map((name) => `{"${name}":"8.8.8.8","dst":"9.9.9.9"}\n`)
      .join('');
    expect(find(events)).toBe("--format jsonl --field 'srcip|client_ip'");
    expect(find(`${'{"dst":"8.8.8.8"}\n'.repeat(3)}{"client_ip":"9.9.9.9"}\n`)).toBe(
      '--format jsonl --field client_ip',
    );
  });

  it('decides JSON with an address at its field by its first line', () => {
    expect(isDecided('{"ip":"8.8.8.8"}', [['ip']])).toBe(true);
    expect(isDecided('{"ip":"-"}', [['ip']])).toBe(false);
    expect(isDecided('{"client":{"ip":"::1"}}', [['ip'], ['client', 'ip']])).toBe(true);
    expect(isDecided('{"Records":[{"client":"::1"}]}', [['client']])).toBe(false);
  });
});
