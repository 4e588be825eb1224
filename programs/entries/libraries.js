import { each, http, lines } from '../ask.js';

const MMDB = 'ipatlas export mmdb -o /var/lib/ipatlas/country.mmdb\n';
/** Some readers know a database by the word GeoLite2 or GeoIP2 in its type. */
const GEOLITE2 = 'ipatlas export mmdb --database-type GeoLite2-Country -o /var/lib/ipatlas/country.mmdb\n';
const job = 'Libraries';
const opened = 'opened again';

const mmdblookup = 'mmdblookup --file /var/lib/ipatlas/country.mmdb --ip 8.8.8.8 country iso_code';

export const LIBRARIES = [
  {
    name: 'libmaxminddb',
    job,
    packages: ['mmdb-bin'],
    count: 1_000,
    exports: MMDB,
    command: mmdblookup,
    ask: each(
      mmdblookup,
      (text) => /"(..)" <utf8_string>/.exec(text)?.[1] ?? (text.includes('Could not find an entry') ? '' : text),
    ),
    release: opened,
  },
  {
    name: 'Python, maxminddb',
    job,
    packages: ['python3-maxminddb'],
    exports: MMDB,
    files: {
      '/srv/country.py': `import sys, maxminddb

with maxminddb.open_database('/var/lib/ipatlas/country.mmdb') as reader:
    for line in sys.stdin:
        record = reader.get(line.strip())
        print(record['country']['iso_code'] if record else '')
`,
    },
    ask: lines('/usr/bin/python3 /srv/country.py'),
    release: opened,
  },
  {
    name: 'Python, geoip2',
    job,
    packages: ['python3-geoip2'],
    exports: MMDB,
    files: {
      '/srv/country.py': `import sys, geoip2.database, geoip2.errors

with geoip2.database.Reader('/var/lib/ipatlas/country.mmdb') as reader:
    for line in sys.stdin:
        try:
            print(reader.country(line.strip()).country.iso_code)
        except geoip2.errors.AddressNotFoundError:
            print('')
`,
    },
    ask: lines('/usr/bin/python3 /srv/country.py'),
    release: opened,
  },
  {
    name: 'PHP, maxminddb',
    job,
    packages: ['php-maxminddb', 'php-cli'],
    exports: MMDB,
    files: {
      '/srv/country.php': `<?php
$reader = new MaxMind\\Db\\Reader('/var/lib/ipatlas/country.mmdb');
while (($line = fgets(STDIN)) !== false) {
    echo $reader->get(trim($line))['country']['iso_code'] ?? '', "\\n";
}
`,
    },
    ask: lines('php /srv/country.php'),
    release: opened,
  },
  {
    name: 'Perl, MaxMind::DB::Reader',
    job,
    packages: ['libmaxmind-db-reader-perl'],
    exports: MMDB,
    files: {
      '/srv/country.pl': `use MaxMind::DB::Reader;

my $reader = MaxMind::DB::Reader->new(file => '/var/lib/ipatlas/country.mmdb');
while (my $line = <STDIN>) {
    chomp $line;
    my $record = $reader->record_for_address($line);
    print $record ? $record->{country}{iso_code} : '', "\\n";
}
`,
    },
    ask: lines('perl /srv/country.pl'),
    release: opened,
    note: 'Faster with `libmaxmind-db-reader-xs-perl`, which it takes by itself.',
  },
  {
    name: 'Perl, GeoIP2',
    job,
    packages: ['libgeoip2-perl'],
    exports: GEOLITE2,
    files: {
      '/srv/country.pl': `use GeoIP2::Database::Reader;

my $reader = GeoIP2::Database::Reader->new(file => '/var/lib/ipatlas/country.mmdb');
while (my $line = <STDIN>) {
    chomp $line;
    my $answer = eval { $reader->country(ip => $line) };
    print $answer ? $answer->country->iso_code : '', "\\n";
}
`,
    },
    ask: lines('perl /srv/country.pl'),
    release: opened,
    note: 'It refuses databases of other types than those of MaxMind, so the export names that type.',
  },
  {
    name: 'Ruby, maxminddb',
    job,
    packages: ['ruby-maxminddb'],
    exports: MMDB,
    files: {
      '/srv/country.rb': `require 'maxminddb'

reader = MaxMindDB.new('/var/lib/ipatlas/country.mmdb')
STDIN.each_line do |line|
  puts reader.lookup(line.strip).country.iso_code.to_s
end
`,
    },
    ask: lines('ruby /srv/country.rb'),
    release: opened,
  },
  {
    name: 'Go, maxminddb-golang',
    job,
    packages: ['golang-github-oschwald-maxminddb-golang-dev', 'golang-go'],
    exports: MMDB,
    files: {
      '/srv/country.go': `package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/oschwald/maxminddb-golang"
)

func main() {
	reader, err := maxminddb.Open("/var/lib/ipatlas/country.mmdb")
	if err != nil {
		log.Fatal(err)
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var record struct {
			Country struct {
				Code string \`maxminddb:"iso_code"\`
			} \`maxminddb:"country"\`
		}
		if err := reader.Lookup(net.ParseIP(input.Text()), &record); err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Country.Code)
	}
}
`,
    },
    load: 'cd /srv && GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=/tmp/go go build -o /srv/country country.go\n',
    ask: lines('/srv/country'),
    release: opened,
  },
  {
    name: 'Go, geoip2-golang',
    job,
    packages: ['golang-github-oschwald-geoip2-golang-dev', 'golang-go'],
    exports: GEOLITE2,
    files: {
      '/srv/country.go': `package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/oschwald/geoip2-golang"
)

func main() {
	reader, err := geoip2.Open("/var/lib/ipatlas/country.mmdb")
	if err != nil {
		log.Fatal(err)
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		record, err := reader.Country(net.ParseIP(input.Text()))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Country.IsoCode)
	}
}
`,
    },
    load: 'cd /srv && GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=/tmp/go go build -o /srv/country country.go\n',
    ask: lines('/srv/country'),
    release: opened,
    note: 'It refuses databases of other types than those of MaxMind, so the export names that type.',
  },
  {
    name: 'Node.js, maxmind',
    job,
    npm: 'maxmind',
    exports: MMDB,
    files: {
      '/srv/country.mjs': `import { createServer } from 'node:http';
import maxmind from 'maxmind';

const reader = await maxmind.open('/var/lib/ipatlas/country.mmdb', { watchForUpdates: true });
const server = createServer((request, response) => {
  response.end(reader.get(request.headers['x-forwarded-for'])?.country?.iso_code ?? '');
});
server.listen(8080, '127.0.0.1');
`,
    },
    start: 'node /srv/country.mjs',
    ask: http((ip) => ({ port: 8080, headers: { 'x-forwarded-for': ip } })),
    release: 'by itself (`watchForUpdates`)',
  },
  {
    name: 'Node.js, mmdb-lib',
    job,
    npm: 'mmdb-lib',
    exports: MMDB,
    files: {
      '/srv/country.mjs': `import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Reader } from 'mmdb-lib';

const reader = new Reader(readFileSync('/var/lib/ipatlas/country.mmdb'));
for await (const line of createInterface({ input: process.stdin })) {
  console.log(reader.get(line)?.country?.iso_code ?? '');
}
`,
    },
    ask: lines('node /srv/country.mjs'),
    release: opened,
  },
];
