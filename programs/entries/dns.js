import { dns } from '../ask.js';

const job = 'Name servers';
const MMDB = 'ipatlas export mmdb -o /var/lib/ipatlas/country.mmdb\n';

/** The regions of the examples. */
const region = (code) =>
  ({ US: 'america', CA: 'america', DE: 'europe', FR: 'europe', NL: 'europe' })[code] ?? 'default';

const zone = (target) => `$TTL 30
@ SOA ns1.example.com. dns.example.com. 1 3600 600 86400 30
@ NS ns1.example.com.
ns1 A 192.0.2.53
www TXT "${target}"
`;

export const DNS = [
  {
    name: 'BIND',
    job,
    packages: ['bind9'],
    exports: 'mkdir -p /usr/share/GeoIP\nipatlas export mmdb -o /usr/share/GeoIP/GeoIP2-Country.mmdb\n',
    files: {
      '/etc/bind/named.conf': `options {
    directory "/var/cache/bind";
    geoip-directory "/usr/share/GeoIP";
    recursion no;
};
view "america" {
    match-clients { geoip country US; geoip country CA; };
    zone "example.com" { type primary; file "/etc/bind/america.zone"; };
};
view "europe" {
    match-clients { geoip country DE; geoip country FR; geoip country NL; };
    zone "example.com" { type primary; file "/etc/bind/europe.zone"; };
};
view "default" {
    zone "example.com" { type primary; file "/etc/bind/default.zone"; };
};
`,
    },
    harness: Object.fromEntries(['america', 'europe', 'default'].map((name) => [`/etc/bind/${name}.zone`, zone(name)])),
    start: 'mkdir -p /run/named && named -f -c /etc/bind/named.conf',
    isService: true,
    reload: 'pkill -HUP -x named',
    ask: dns('www.example.com', { isClient: true }),
    expects: region,
    note: 'BIND looks for the file name `GeoIP2-Country.mmdb`, and knows only the address that a question comes from: the resolver.',
  },
  {
    name: 'Knot DNS',
    job,
    packages: ['knot', 'knot-module-geoip'],
    exports: MMDB,
    files: {
      '/etc/knot/knot.conf': `server:
    listen: [ 127.0.0.1@53, ::1@53 ]
    edns-client-subnet: on

mod-geoip:
  - id: countries
    config-file: /etc/knot/countries.conf
    mode: geodb
    geodb-file: /var/lib/ipatlas/country.mmdb
    geodb-key: country/iso_code

zone:
  - domain: example.com
    file: /etc/knot/example.com.zone
    module: mod-geoip/countries
`,
      '/etc/knot/countries.conf': `www.example.com:
${[
  ['US', 'america'],
  ['CA', 'america'],
  ['DE', 'europe'],
  ['FR', 'europe'],
  ['NL', 'europe'],
]
  .map(([code, name]) => `  - geo: "${code}"\n    TXT: "${name}"\n`)
  .join('')}`,
    },
    harness: { '/etc/knot/example.com.zone': zone('default') },
    start: 'mkdir -p /run/knot && knotd -c /etc/knot/knot.conf',
    isService: true,
    reload: 'knotc reload',
    ask: dns('www.example.com'),
    expects: region,
    note: 'It answers by the client that the resolver names (EDNS client subnet).',
  },
  {
    name: 'PowerDNS',
    job,
    packages: ['pdns-server', 'pdns-backend-geoip'],
    exports: MMDB,
    files: {
      '/etc/powerdns/pdns.conf': `launch=geoip
geoip-database-files=mmdb:/var/lib/ipatlas/country.mmdb
geoip-zones-file=/etc/powerdns/zones.yaml
edns-subnet-processing=yes
cache-ttl=0
query-cache-ttl=0
`,
      '/etc/powerdns/zones.yaml': `domains:
  - domain: example.com
    ttl: 30
    records:
      example.com:
        - soa: ns1.example.com dns.example.com 1 3600 600 86400 30
        - ns: ns1.example.com
      www.example.com:
        - txt: '%cc'
`,
    },
    start: 'pdns_server --daemon=no --guardian=no --local-address=127.0.0.1 --setuid= --setgid=',
    isService: true,
    reload: 'pdns_control rediscover',
    ask: dns('www.example.com'),
    expects: (code) => code.toLowerCase() || 'unknown',
    note: '`%cc` in a name or a text is the country of the client. Lua records are in [routing.md](routing.md#powerdns).',
  },
  {
    name: 'gdnsd',
    job,
    packages: ['gdnsd'],
    exports: 'ipatlas export mmdb --database-type GeoLite2-Country -o /var/lib/ipatlas/country.mmdb\n',
    files: {
      '/etc/gdnsd/config': `options => { listen => [ 127.0.0.1 ] }
plugins => { geoip => {
  maps => { countries => {
    geoip2_db => /var/lib/ipatlas/country.mmdb
    datacenters => [ default, america, europe ]
    map => {
      NA => { US => [ america ], CA => [ america ] }
      EU => { DE => [ europe ], FR => [ europe ], NL => [ europe ] }
      default => [ default ]
    }
  } }
  resources => { www => {
    map => countries
    dcmap => { default => 192.0.2.1, america => 192.0.2.2, europe => 192.0.2.3 }
  } }
} }
`,
    },
    harness: {
      '/etc/gdnsd/zones/example.com': `@ SOA ns1 dns ( 1 3600 600 86400 30 )
@ NS ns1
ns1 A 192.0.2.53
www 30 DYNA geoip!www
`,
    },
    start: 'mkdir -p /run/gdnsd && gdnsd start',
    isService: true,
    reload: 'gdnsdctl replace',
    ask: dns('www.example.com', { type: 1 }),
    expects: (code) => ({ america: '192.0.2.2', europe: '192.0.2.3', default: '192.0.2.1' })[region(code)],
    note: 'It notices a newer file by itself, too, after some 12 s; in one of seven runs it did not within a minute. `ipatlas export gdnsd` writes all of it for servers that you list, each country to the closest one: [routing.md](routing.md).',
  },
];
