import { report } from '../ask.js';

const job = 'Databases';
const CIDR = 'ipatlas export cidr -o /var/lib/ipatlas/country.csv\n';
const RANGES = 'ipatlas export csv -o /var/lib/ipatlas/ranges.csv\n';

/** A query of SQL for 8.8.8.8, run for every address by one client. @param client reads SQL and prints one line for each query */
function sql(query, client) {
  const END = '--end--';
  return report(
    client,
    (addresses) => addresses.map((ip) => `${query.trim().replaceAll('8.8.8.8', ip)}\nSELECT '${END}';\n`).join(''),
    (output) => {
      const answers = output.split(`${END}\n`);
      return (_, i) => answers[i]?.trim();
    },
  );
}

const postgres = (load, query) => ({
  job,
  harness: {
    '/srv/postgres.sh': `rm -rf /tmp/cluster /tmp/.s.PGSQL* && mkdir /tmp/cluster && chown postgres /tmp/cluster
runuser -u postgres -- /usr/lib/postgresql/*/bin/initdb -A trust -D /tmp/cluster >/dev/null
exec runuser -u postgres -- /usr/lib/postgresql/*/bin/postgres -D /tmp/cluster -k /tmp
`,
  },
  start: 'bash /srv/postgres.sh',
  isService: true,
  ready: 'psql -h /tmp -U postgres -c "SELECT 1"',
  load: `psql -h /tmp -U postgres -q -f /srv/load.sql`,
  files: { '/srv/load.sql': load },
  reload: 'psql -h /tmp -U postgres -q -f /srv/load.sql',
  command: query,
  commandLanguage: 'sql',
  ask: sql(query, 'psql -h /tmp -U postgres -At'),
});

const plain = "SELECT country_code FROM ip_country WHERE network >>= inet '8.8.8.8';";
const ip4r = "SELECT country_code FROM ip_country WHERE network >>= ipaddress '8.8.8.8';";
const mariadb = `SELECT country_code FROM (SELECT * FROM ip_country WHERE start <= as_inet6('8.8.8.8') ORDER BY start DESC LIMIT 1) AS nearest
WHERE as_inet6('8.8.8.8') <= end;`;

const clickhouse = `SELECT if(position('8.8.8.8', ':') = 0,
  dictGetString('ip_country4', 'country_code', tuple(IPv4StringToNum('8.8.8.8'))),
  dictGetString('ip_country6', 'country_code', tuple(IPv6StringToNum('8.8.8.8'))));`;

const clickhouseDictionary = (family) => `
  <dictionary>
    <name>ip_country${family}</name>
    <source>
      <file>
        <path>/var/lib/clickhouse/user_files/country${family}.csv</path>
        <format>CSVWithNames</format>
      </file>
    </source>
    <layout><ip_trie /></layout>
    <structure>
      <key><attribute><name>network</name><type>String</type></attribute></key>
      <attribute><name>country_code</name><type>String</type><null_value></null_value></attribute>
      <attribute><name>country</name><type>String</type><null_value></null_value></attribute>
      <attribute><name>is_eu</name><type>String</type><null_value></null_value></attribute>
    </structure>
    <lifetime>60</lifetime>
  </dictionary>`;

export const DATABASES = [
  {
    name: 'PostgreSQL',
    packages: ['postgresql-15'],
    exports: CIDR,
    ...postgres(
      `BEGIN;
DROP TABLE IF EXISTS ip_country;
CREATE TABLE ip_country (network cidr, country_code text, country text, is_eu boolean);
\\copy ip_country FROM '/var/lib/ipatlas/country.csv' WITH (FORMAT csv, HEADER)
CREATE INDEX ON ip_country USING spgist (network inet_ops);
COMMIT;
ANALYZE ip_country;
`,
      plain,
    ),
    note: 'With a GiST index, a query takes 75 times as long. Queries wait while the table is replaced. Joins with tables of addresses are in [warehouses.md](warehouses.md#postgresql).',
  },
  {
    name: 'PostgreSQL, ip4r',
    packages: ['postgresql-15-ip4r', 'postgresql-15'],
    exports: RANGES,
    ...postgres(
      `BEGIN;
CREATE EXTENSION IF NOT EXISTS ip4r;
CREATE TEMPORARY TABLE loaded (start ipaddress, "end" ipaddress, country_code text, country text, is_eu boolean) ON COMMIT DROP;
\\copy loaded FROM '/var/lib/ipatlas/ranges.csv' WITH (FORMAT csv, HEADER)
DROP TABLE IF EXISTS ip_country;
CREATE TABLE ip_country AS SELECT iprange(start, "end") AS network, country_code, country, is_eu FROM loaded;
CREATE INDEX ON ip_country USING gist (network);
COMMIT;
ANALYZE ip_country;
`,
      ip4r,
    ),
    note: 'Ranges instead of blocks, so half the rows.',
  },
  {
    name: 'MariaDB',
    job,
    packages: ['mariadb-server', 'mariadb-client'],
    exports: RANGES,
    files: {
      '/srv/load.sql': `CREATE DATABASE IF NOT EXISTS ipatlas;
USE ipatlas;
CREATE OR REPLACE FUNCTION as_inet6(ip TEXT) RETURNS INET6 DETERMINISTIC
  RETURN IF(ip LIKE '%:%', ip, CONCAT('::ffff:', ip));
CREATE OR REPLACE TABLE loading (start INET6 PRIMARY KEY, end INET6 NOT NULL, country_code CHAR(2), country TEXT, is_eu BOOLEAN);
LOAD DATA LOCAL INFILE '/var/lib/ipatlas/ranges.csv' INTO TABLE loading
  FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' IGNORE 1 LINES (@start, @end, country_code, country, @is_eu)
  SET start = as_inet6(@start), end = as_inet6(@end), is_eu = @is_eu = 'true';
CREATE TABLE IF NOT EXISTS ip_country LIKE loading;
RENAME TABLE ip_country TO replaced, loading TO ip_country;
DROP TABLE replaced;
`,
    },
    harness: {
      '/srv/mariadb.sh': `mkdir -p /run/mysqld && chown mysql /run/mysqld && rm -rf /var/lib/mysql/* && chown mysql /var/lib/mysql
mariadb-install-db --user=mysql --datadir=/var/lib/mysql >/dev/null
exec mariadbd --user=mysql --datadir=/var/lib/mysql --local-infile=1
`,
    },
    start: 'bash /srv/mariadb.sh',
    isService: true,
    ready: 'mariadb -e "SELECT 1"',
    load: 'mariadb --local-infile=1 < /srv/load.sql',
    reload: 'mariadb --local-infile=1 < /srv/load.sql',
    command: mariadb,
    commandLanguage: 'sql',
    ask: sql(mariadb, 'mariadb -N ipatlas'),
    note: 'One column of the type `INET6` has both families, and the range with the nearest start decides. IPv4 addresses are in it as IPv4-mapped ones.',
  },
  {
    name: 'ClickHouse',
    job,
    packages: ['clickhouse-server', 'clickhouse-client'],
    exports: `mkdir -p /var/lib/clickhouse/user_files
ipatlas export cidr --family 4 -o /var/lib/clickhouse/user_files/country4.csv
ipatlas export cidr --family 6 -o /var/lib/clickhouse/user_files/country6.csv
`,
    files: {
      '/etc/clickhouse-server/country_dictionary.xml': `<yandex>${[4, 6].map(clickhouseDictionary).join('')}
</yandex>
`,
    },
    start: 'runuser -u clickhouse -- clickhouse-server --config-file=/etc/clickhouse-server/config.xml',
    isService: true,
    reload: 'clickhouse-client -q "SYSTEM RELOAD DICTIONARIES"',
    command: clickhouse,
    commandLanguage: 'sql',
    ask: sql(clickhouse, 'clickhouse-client --multiquery'),
    note: 'A dictionary for each family: with both in one, this version answers IPv6 addresses with the IPv4 block of the same first bits. The `CREATE DICTIONARY` of newer versions is in [exports.md](exports.md#clickhouse), not tested.',
  },
];
