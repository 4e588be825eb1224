import { isIPv6 } from 'node:net';
import { connection, each, fromClient, http, report, udp } from '../ask.js';

const job = 'Firewalls and access';
const MMDB = 'ipatlas export mmdb -o /var/lib/ipatlas/country.mmdb\n';
const EUROPE = ['DE', 'FR', 'NL'];
const allowed = (code) => (EUROPE.includes(code) ? 'allowed' : 'denied');

/** Returns the function that answers by a list of the addresses that are allowed. */
function listedIn(text) {
  const listed = new Set(text.split('\n'));
  return (ip) => (listed.has(ip) ? 'allowed' : 'denied');
}

export const ACCESS = [
  {
    name: 'nftables',
    job,
    packages: ['nftables'],
    exports:
      'ipatlas export nft --countries DE,FR,NL -o /var/lib/ipatlas/countries.nft && nft -f /var/lib/ipatlas/countries.nft\n',
    before: 'nft -f /etc/nftables.conf\n',
    files: {
      '/etc/nftables.conf': `table inet ipatlas {
    chain input {
        type filter hook input priority filter - 10; policy accept;
        tcp dport 443 ip saddr != @countries4 reject with tcp reset
        tcp dport 443 ip6 saddr != @countries6 reject with tcp reset
    }
}
`,
    },
    harness: {
      '/srv/server.mjs': `import { createServer } from 'node:net';
createServer((socket) => socket.end('allowed')).listen(443, '::');
`,
    },
    start: 'node /srv/server.mjs',
    isService: true,
    ask: connection({
      port: 443,
      read: (text) => text.replace('ECONNRESET', 'denied').replace('ECONNREFUSED', 'denied'),
    }),
    expects: allowed,
    release: 'with `nft -f`, in one transaction',
    note: 'The memory is that of the server behind it. The rules here answer with a reset, so that the test is fast; `drop` gives no answer.',
  },
  {
    name: 'ipset',
    job,
    packages: ['ipset'],
    exports: `ipatlas export ipset --countries DE,FR,NL --set allowed -o /var/lib/ipatlas/allowed.ipset
ipset restore -exist < /var/lib/ipatlas/allowed.ipset
`,
    command: 'ipset test allowed4 8.8.8.8',
    // It says that an address is in a set on stderr, and that it is not on stdout.
    ask: report(
      'stdbuf -oL ipset - 2>&1',
      (addresses) => addresses.map((ip) => `test allowed${isIPv6(ip) ? 6 : 4} ${ip}\n`).join(''),
      (text) => {
        const answers = [...text.matchAll(/ is (NOT )?in set /g)].map(([, not]) => (not ? 'denied' : 'allowed'));
        return (_, i) => answers[i];
      },
    ),
    expects: allowed,
    count: 95_000,
    release: 'with `ipset restore`: rules see the old set or the new one',
    note: 'Rules name the sets: `iptables -I INPUT -p tcp --dport 443 -m set ! --match-set allowed4 src -j DROP`, with `ip6tables` and `allowed6`.',
  },
  {
    name: 'firewalld',
    job,
    packages: ['firewalld', 'grepcidr'],
    exports: `mkdir -p /etc/firewalld/ipsets
ipatlas export firewalld --countries DE,FR,NL --family 4 --set allowed -o /etc/firewalld/ipsets/allowed4.xml
ipatlas export firewalld --countries DE,FR,NL --family 6 --set allowed -o /etc/firewalld/ipsets/allowed6.xml
`,
    command: 'firewall-offline-cmd --ipset=allowed4 --get-entries',
    ask: report(
      'for n in 4 6; do firewall-offline-cmd --ipset=allowed$n --get-entries; done > /tmp/entries; grepcidr -f /tmp/entries || true',
      (addresses) => `${addresses.join('\n')}\n`,
      listedIn,
    ),
    expects: allowed,
    count: 95_000,
    release: 'by `firewall-cmd --reload`',
    note: 'Asked for the entries of its sets, without a running daemon; `grepcidr` says which addresses they contain.',
  },
  {
    name: 'ModSecurity',
    job,
    packages: ['libmodsecurity3', 'libnginx-mod-http-modsecurity', 'nginx'],
    exports: MMDB,
    files: {
      '/etc/nginx/conf.d/country.conf': `modsecurity on;
modsecurity_rules '
  SecRuleEngine On
  SecGeoLookupDb /var/lib/ipatlas/country.mmdb
  SecRule REMOTE_ADDR "@geoLookup" "id:1,phase:1,pass,nolog"
  SecRule GEO:COUNTRY_CODE "!@rx ^(DE|FR|NL)$" "id:2,phase:1,deny,status:403,nolog"
  SecRule &GEO:COUNTRY_CODE "@eq 0" "id:3,phase:1,deny,status:403,nolog"
';
server {
    listen 80;
    listen [::]:80;
    location / { root /srv/www; }
}
`,
    },
    harness: {
      '/etc/nginx/nginx.conf':
        'user www-data;\nworker_processes 1;\npid /run/nginx.pid;\ninclude /etc/nginx/modules-enabled/*.conf;\nevents {}\nhttp { include /etc/nginx/conf.d/*.conf; }\n',
      '/srv/www/index.html': 'allowed',
    },
    start: "nginx -g 'daemon off;'",
    isService: true,
    reload: 'restart',
    note: 'After `nginx -s reload`, this version finds no country for any address, so nginx is restarted.',
    ask: http(fromClient, ({ status }) => (status === 200 ? 'allowed' : 'denied')),
    expects: allowed,
  },
  {
    name: 'ProFTPD',
    job,
    packages: ['proftpd-core', 'proftpd-mod-geoip2'],
    exports: MMDB,
    files: {
      '/etc/proftpd/conf.d/country.conf': `LoadModule mod_geoip2.c
<IfModule mod_geoip2.c>
  GeoIPEngine on
  GeoIPTable /var/lib/ipatlas/country.mmdb
  GeoIPAllowFilter CountryCode ^(DE|FR|NL)$
  GeoIPPolicy deny,allow
</IfModule>
`,
    },
    start: 'mkdir -p /run/proftpd && proftpd --nodaemon',
    isService: true,
    reload: 'kill -HUP "$(cat /run/proftpd.pid)"',
    ask: connection({ port: 21, read: (text) => (text.startsWith('220') ? 'allowed' : 'denied') }),
    expects: allowed,
  },
  {
    name: 'Kamailio',
    job,
    packages: ['kamailio', 'kamailio-geoip2-modules'],
    exports: MMDB,
    files: {
      '/etc/kamailio/kamailio.cfg': `listen=udp:127.0.0.1:5060
listen=udp:[::1]:5060
children=2
loadmodule "sl.so"
loadmodule "pv.so"
loadmodule "geoip2.so"
modparam("geoip2", "path", "/var/lib/ipatlas/country.mmdb")
request_route {
    if (geoip2_match("$si", "from")) sl_send_reply("200", "$gip2(from=>cc)");
    else sl_send_reply("404", "None");
}
`,
    },
    start: 'mkdir -p /run/kamailio && kamailio -DD -E -f /etc/kamailio/kamailio.cfg',
    isService: true,
    reload: 'restart',
    note: 'The command `kamcmd geoip2.reload` ends this version with a double free, so it is restarted.',
    ask: udp({
      port: 5060,
      source: (ip) => ip,
      packet: (ip, { port }) => {
        const host = ip.includes(':') ? `[${ip}]` : ip;
        return `OPTIONS sip:example.com SIP/2.0\r\nVia: SIP/2.0/UDP ${host}:${port};branch=z9hG4bK${port}\r\nFrom: <sip:a@example.com>;tag=1\r\nTo: <sip:b@example.com>\r\nCall-ID: ${port}\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 9\r\nContent-Length: 0\r\n\r\n`;
      },
      read: (message) => /^SIP\/2\.0 200 (..)\r/.exec(message.toString('latin1'))?.[1] ?? '',
    }),
  },
  {
    name: 'PAM, pam_geoip',
    job,
    packages: ['libpam-geoip', 'pamtester'],
    exports: MMDB,
    files: {
      '/etc/pam.d/example': 'account required pam_geoip.so geoip_db=/var/lib/ipatlas/country.mmdb action=deny\n',
      '/etc/security/geoip.conf': `*  example  allow  DE,*; FR,*; NL,*
*  *        deny   UNKNOWN
`,
    },
    command: 'pamtester -I rhost=8.8.8.8 example root acct_mgmt',
    ask: each('pamtester -I rhost=8.8.8.8 example root acct_mgmt', (text) =>
      text.includes('management done') ? 'allowed' : 'denied',
    ),
    expects: allowed,
    count: 1_000,
  },
  {
    name: 'Postfix',
    job,
    packages: ['postfix'],
    exports: 'ipatlas export haproxy --embedded none -o /var/lib/ipatlas/country.cidr\n',
    files: {
      '/etc/postfix/main.cf': `compatibility_level = 3.6
smtpd_client_restrictions = check_client_access cidr:/etc/postfix/country_access
`,
    },
    command: 'postmap -q 8.8.8.8 cidr:/var/lib/ipatlas/country.cidr',
    ask: report(
      'postmap -q - cidr:/var/lib/ipatlas/country.cidr || true',
      (addresses) => `${addresses.join('\n')}\n`,
      (text) => {
        const codes = new Map(text.split('\n').map((line) => line.split('\t')));
        return (ip) => codes.get(ip) ?? '';
      },
    ),
    note: 'The map of HAProxy is a `cidr:` table of Postfix as it is. Postfix compares with one block after the other, so use a few countries (`--countries`) if there is much mail.',
  },
  {
    name: 'Tor',
    job,
    packages: ['tor'],
    exports: `ipatlas export csv --family 4 | awk -F '[.,]' 'NR > 1 { print (($1 * 256 + $2) * 256 + $3) * 256 + $4 "," (($5 * 256 + $6) * 256 + $7) * 256 + $8 "," $9 }' > /var/lib/ipatlas/geoip
ipatlas export csv --family 6 | awk -F , 'NR > 1 { print $1 "," $2 "," $3 }' > /var/lib/ipatlas/geoip6
`,
    files: {
      '/etc/tor/torrc': `GeoIPFile /var/lib/ipatlas/geoip
GeoIPv6File /var/lib/ipatlas/geoip6
`,
    },
    start:
      'mkdir -p /tmp/tor && tor -f /etc/tor/torrc --DataDirectory /tmp/tor --DisableNetwork 1 --ControlPort 127.0.0.1:9051 --CookieAuthentication 0',
    isService: true,
    reload: 'restart',
    ask: report(
      "exec 3<>/dev/tcp/127.0.0.1/9051; (echo AUTHENTICATE; cat; echo QUIT) | sed 's/$/\\r/' >&3; cat <&3",
      (addresses) => addresses.map((ip) => `GETINFO ip-to-country/${ip}\n`).join(''),
      (text) => {
        const codes = new Map(
          [...text.matchAll(/ip-to-country\/(\S+)=(..)/g)].map(([, ip, code]) => [ip, code.toUpperCase()]),
        );
        return (ip) => codes.get(ip)?.replace('??', '');
      },
    ),
    note: '`ExcludeNodes {xx}` and its statistics use it. A signal to reload does not read the files again.',
  },
  {
    name: 'grepcidr',
    job: 'Logs and traffic',
    packages: ['grepcidr'],
    exports: 'ipatlas export cidr --countries DE,FR,NL | tail -n +2 | cut -d , -f 1 > /var/lib/ipatlas/europe.txt\n',
    command: 'grepcidr -f /var/lib/ipatlas/europe.txt access.log',
    ask: report(
      'cat > /tmp/access.log; cd /tmp; grepcidr -f /var/lib/ipatlas/europe.txt access.log || true',
      (addresses) => `${addresses.join('\n')}\n`,
      listedIn,
    ),
    expects: allowed,
    note: '`ipatlas filter --country` needs no list, and knows the formats of logs.',
  },
  {
    name: 'mailfromd',
    job,
    packages: ['mailfromd'],
    exports: MMDB,
    files: {
      '/srv/country.mfl': `require status

func main(...) returns number
do
  geoip2_open("/var/lib/ipatlas/country.mmdb")
  loop for number i 1, while i <= $#, set i i + 1
  do
    try
    do
      echo geoip2_get($(i), "country.iso_code")
    done
    catch e_not_found
    do
      echo "none"
    done
  done
  return 0
done
`,
    },
    command: 'mailfromd --run --stderr /srv/country.mfl 8.8.8.8',
    ask: report(
      'xargs mailfromd --run --stderr /srv/country.mfl 2>&1',
      (addresses) => addresses.join('\n'),
      (text) => {
        const answers = text
          .trimEnd()
          .split('\n')
          .filter((line) => !line.startsWith('mailfromd: '));
        return (_, i) => answers[i]?.replace(/^string result:/, '').replace('none', '');
      },
    ),
    note: 'Filters call `geoip2_get` in the same way, with the address of the client.',
  },
];
