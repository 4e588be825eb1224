import { connection, forwarded, fromClient, http } from '../ask.js';

const job = 'Web servers and proxies';
const MMDB = 'ipatlas export mmdb -o /var/lib/ipatlas/country.mmdb\n';

/** What Debian's nginx.conf has around the files of conf.d and the modules. */
const nginxConf = (more = '') => ({
  '/etc/nginx/nginx.conf': `user www-data;
worker_processes 1;
pid /run/nginx.pid;
include /etc/nginx/modules-enabled/*.conf;
events {}
http { include /etc/nginx/conf.d/*.conf; }
${more}`,
});
const nginxSays = `server {
    listen 127.0.0.1:80;
    set_real_ip_from 127.0.0.1;
    real_ip_header X-Forwarded-For;
    location / { return 200 $ip_country_code; }
}
`;

export const WEB = [
  {
    name: 'nginx, geoip2',
    job,
    packages: ['nginx', 'libnginx-mod-http-geoip2'],
    exports: MMDB,
    files: {
      '/etc/nginx/conf.d/country.conf': `geoip2 /var/lib/ipatlas/country.mmdb {
    auto_reload 1m;
    $ip_country_code country iso_code;
}
${nginxSays}`,
    },
    harness: nginxConf(),
    start: "nginx -g 'daemon off;'",
    reload: 'nginx -s reload',
    ask: http(forwarded),
    note: '`auto_reload 1m` looks for a newer file once a minute, with the next request; `nginx -s reload` takes it at once.',
  },
  {
    name: 'nginx, geo',
    job,
    packages: ['nginx'],
    exports: 'ipatlas export nginx --embedded none -o /var/lib/ipatlas/country.geo\n',
    files: {
      '/etc/nginx/conf.d/country.conf': `geo $ip_country_code {
    include /var/lib/ipatlas/country.geo;
}
${nginxSays}`,
    },
    harness: nginxConf(),
    start: "nginx -g 'daemon off;'",
    reload: 'nginx -s reload',
    ask: http(forwarded),
    count: 95_000,
    note: 'Needs no module, but the memory of a table.',
  },
  {
    name: 'HAProxy',
    job,
    packages: ['haproxy'],
    exports: 'ipatlas export haproxy --embedded none -o /var/lib/ipatlas/country.map\n',
    files: {
      '/etc/haproxy/haproxy.cfg': `defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 1s

frontend web
    bind 127.0.0.1:80
    http-request set-src req.hdr(X-Forwarded-For)
    http-request return content-type text/plain lf-string "%[src,map_ip(/var/lib/ipatlas/country.map,-)]"
`,
    },
    start: 'haproxy -W -db -p /run/haproxy.pid -f /etc/haproxy/haproxy.cfg',
    reload: 'kill -USR2 "$(cat /run/haproxy.pid)"',
    ask: http(forwarded, ({ body }) => (body === '-' ? '' : body)),
    count: 95_000,
    release: 'by `systemctl reload haproxy`',
  },
  {
    name: 'nginx, stream',
    job,
    packages: ['nginx', 'libnginx-mod-stream-geoip2'],
    exports: MMDB,
    files: {
      '/etc/nginx/stream.conf': `stream {
    geoip2 /var/lib/ipatlas/country.mmdb {
        $ip_country_code country iso_code;
    }
    server {
        listen 9000;
        listen [::]:9000;
        return $ip_country_code;
    }
}
`,
    },
    harness: nginxConf('include /etc/nginx/stream.conf;\n'),
    start: "nginx -g 'daemon off;'",
    isService: true,
    reload: 'nginx -s reload',
    ask: connection({ port: 9000, isEnough: () => false, read: (text) => text }),
  },
  {
    name: 'lighttpd',
    job,
    packages: ['lighttpd', 'lighttpd-mod-maxminddb'],
    exports: MMDB,
    files: {
      '/etc/lighttpd/lighttpd.conf': `server.modules += ( "mod_maxminddb", "mod_cgi" )
server.port = 80
server.bind = "127.0.0.1"
$SERVER["socket"] == "[::1]:80" { }
server.document-root = "/var/www/html"

maxminddb.activate = "enable"
maxminddb.db = "/var/lib/ipatlas/country.mmdb"
maxminddb.env = ( "GEOIP_COUNTRY" => "country/iso_code" )
cgi.assign = ( ".sh" => "/bin/sh" )
`,
      '/var/www/html/country.sh': `printf 'Content-Type: text/plain\\n\\n%s' "$GEOIP_COUNTRY"
`,
    },
    start: 'lighttpd -D -f /etc/lighttpd/lighttpd.conf',
    isService: true,
    reload: 'pkill -USR1 -x lighttpd',
    ask: http((ip) => ({ ...fromClient(ip), path: '/country.sh' })),
    note: 'CGI, FastCGI and SCGI programs have the variable in their environment. Behind a proxy (`mod_extforward`), requests of several clients on one connection got the country of an earlier one in a trial: the proxy must not keep connections open.',
  },
  {
    name: 'Traffic Server',
    job,
    packages: ['trafficserver', 'trafficserver-experimental-plugins'],
    exports: MMDB,
    files: {
      '/etc/trafficserver/remap.config': `map http://example.com/ http://127.0.0.1:8081/ @plugin=maxmind_acl.so @pparam=/etc/trafficserver/country.yaml
`,
      '/etc/trafficserver/country.yaml': `maxmind:
  database: /var/lib/ipatlas/country.mmdb
  allow:
    country:
      - DE
      - FR
      - NL
`,
    },
    harness: {
      '/srv/origin.mjs':
        "import { createServer } from 'node:http';\ncreateServer((_, response) => response.end('allowed')).listen(8081, '127.0.0.1');\n",
    },
    start:
      'mkdir -p /run/trafficserver && chown trafficserver /run/trafficserver; node /srv/origin.mjs & exec traffic_manager',
    isService: true,
    reload: 'touch /etc/trafficserver/remap.config && traffic_ctl config reload',
    ask: http(
      (ip) => ({ ...fromClient(ip), port: 8080, headers: { host: 'example.com' } }),
      ({ status }) => (status === 200 ? 'allowed' : 'denied'),
    ),
    expects: (code) => (['DE', 'FR', 'NL'].includes(code) ? 'allowed' : 'denied'),
  },
  {
    name: 'Squid',
    job,
    packages: ['squid'],
    exports: 'ipatlas export cidr --countries DE,FR,NL | tail -n +2 | cut -d , -f 1 > /var/lib/ipatlas/europe.txt\n',
    files: {
      '/etc/squid/conf.d/country.conf': `acl europe src "/var/lib/ipatlas/europe.txt"
http_access allow europe
http_access deny all
`,
    },
    harness: {
      '/etc/squid/squid.conf': `http_port 3128
pid_filename /run/squid.pid
cache deny all
acl proxies src 127.0.0.1
follow_x_forwarded_for allow proxies
acl_uses_indirect_client on
access_log none
include /etc/squid/conf.d/country.conf
`,
    },
    start: 'squid -N -f /etc/squid/squid.conf',
    isService: true,
    reload: 'squid -k reconfigure',
    ask: http(
      (ip) => ({ ...forwarded(ip), port: 3128, path: 'http://127.0.0.1:1/' }),
      ({ status }) => (status === 403 ? 'denied' : 'allowed'),
    ),
    expects: (code) => (['DE', 'FR', 'NL'].includes(code) ? 'allowed' : 'denied'),
  },
  {
    name: 'Caddy',
    job,
    packages: ['caddy'],
    exports: `ipatlas export cidr --countries AL,MU | awk -F , 'BEGIN { printf "remote_ip forwarded" } NR > 1 { printf " " $1 } END { print "" }' > /var/lib/ipatlas/some.caddy
`,
    files: {
      '/etc/caddy/Caddyfile': `http://127.0.0.1:80 {
  @some {
    import /var/lib/ipatlas/some.caddy
  }
  respond @some "allowed" 200
  respond "denied" 403
}
`,
    },
    start: 'HOME=/tmp caddy run --config /etc/caddy/Caddyfile --adapter caddyfile',
    isService: true,
    reload: 'caddy reload --config /etc/caddy/Caddyfile --adapter caddyfile --force',
    ask: http(forwarded, ({ body }) => body),
    expects: (code) => (['AL', 'MU'].includes(code) ? 'allowed' : 'denied'),
    note: 'Debian has no module of Caddy that reads MaxMind DB files. A matcher compares with one block after the other.',
  },
];
