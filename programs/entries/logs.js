import { capture, report } from '../ask.js';

const job = 'Logs and traffic';
const MMDB = 'ipatlas export mmdb -o /var/lib/ipatlas/country.mmdb\n';

/** A line of an access log in the combined format for each address. */
const accessLog = (addresses) =>
  addresses.map((ip) => `${ip} - - [26/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n`).join('');

const goaccess =
  'goaccess access.log --log-format=COMBINED --geoip-database=/var/lib/ipatlas/country.mmdb --no-progress -o report.json';

const tshark = 'tshark -r capture.pcap -T fields -e ip.geoip.src_country_iso -e ipv6.geoip.src_country_iso';

export const LOGS = [
  {
    name: 'GoAccess',
    job,
    packages: ['goaccess'],
    exports: MMDB,
    command: goaccess,
    ask: report(
      `cd /tmp && cat > access.log && ${goaccess} --max-items=100000 >&2 && cat report.json`,
      accessLog,
      (text) => {
        const hosts = new Map(JSON.parse(text).hosts.data.map(({ data, country }) => [data, country ?? 'Unknown']));
        return (ip) => (hosts.get(ip) ?? 'no host').replace('Unknown', '').slice(0, 2);
      },
    ),
  },
  {
    name: 'syslog-ng',
    job,
    packages: ['syslog-ng-core', 'syslog-ng-mod-geoip2'],
    exports: MMDB,
    files: {
      '/etc/syslog-ng/syslog-ng.conf': `@version: 3.38
options { use-dns(no); };
source messages { network(ip("127.0.0.1") port(514) transport("tcp") flags(no-parse)); };
parser country { geoip2("\${MESSAGE}", prefix("geo."), database("/var/lib/ipatlas/country.mmdb")); };
destination file { file("/var/log/country.log" template("\${MESSAGE} \${geo.country.iso_code}\\n")); };
log { source(messages); parser(country); destination(file); };
`,
    },
    start: 'syslog-ng -F --no-caps',
    isService: true,
    reload: 'syslog-ng-ctl reload',
    ask: report(
      ': > /var/log/country.log; exec 3<>/dev/tcp/127.0.0.1/514; tee /tmp/asked >&3; exec 3>&-; for i in $(seq 100); do [ "$(wc -l < /var/log/country.log)" -ge "$(wc -l < /tmp/asked)" ] && break; sleep 0.05; done; cat /var/log/country.log',
      (addresses) => `${addresses.join('\n')}\n`,
      (text) => {
        const codes = new Map(text.split('\n').map((line) => line.split(' ')));
        return (ip) => codes.get(ip);
      },
    ),
  },
  {
    name: 'tshark',
    job,
    packages: ['tshark'],
    exports: MMDB,
    files: { '/root/.config/wireshark/maxmind_db_paths': '"/var/lib/ipatlas"\n' },
    command: tshark,
    ask: report(`cat > /tmp/capture.pcap && cd /tmp && ${tshark} 2>/dev/null`, capture, (text) => {
      const rows = text.split('\n');
      return (_, i) => rows[i]?.replaceAll('\t', '');
    }),
    note: 'Wireshark and tshark take each `.mmdb` file of the folders in that list; the fields are in filters, too: `ip.geoip.src_country_iso == "DE"`.',
  },
  {
    name: 'pmacct',
    job,
    packages: ['pmacct'],
    exports: MMDB,
    files: {
      '/etc/pmacct/country.conf': `geoipv2_file: /var/lib/ipatlas/country.mmdb
aggregate: src_host, src_host_country
plugins: print
print_output: csv
print_output_file: /tmp/traffic.csv
pcap_savefile: /tmp/capture.pcap
`,
    },
    command: 'pmacctd -f /etc/pmacct/country.conf',
    ask: report(
      'rm -f /tmp/traffic.csv; cat > /tmp/capture.pcap && pmacctd -f /etc/pmacct/country.conf >&2; for i in $(seq 100); do [ -s /tmp/traffic.csv ] && break; sleep 0.1; done; cat /tmp/traffic.csv',
      capture,
      (text) => {
        const codes = new Map(text.split('\n').map((line) => line.split(',')));
        return (ip) => codes.get(ip);
      },
    ),
    note: 'Instead of the capture, `pcap_interface` counts the traffic of an interface; nfacctd and sfacctd take the same settings.',
  },
];
