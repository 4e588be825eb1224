/** The defaults of the gates as schemas/sources.schema.json and docs/rebuild.md give them, made from src/limits.ts. */
import { DEFAULT_GATES } from '../dist/src/limits.js';
import { gateText } from '../dist/src/report/stored-report.js';

/** Writes a number without an exponent. */
const plain = (value) => value.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 10 });

/** Returns the JSON schema with the default at the end of each gate's description. */
export function schemaWithDefaults(schema) {
  return Object.entries(DEFAULT_GATES).reduce((text, [gate, limit]) => {
    const [base, ...perDay] = Object.values(typeof limit === 'number' ? [limit] : limit).map(plain);
    const growth = perDay.map((value) => ` and ${value} a day`).join('');
    const pattern = new RegExp(`("${gate}": \\{\\s*"description": "[^";]*; )[^"]*? unless given`);
    if (!pattern.test(text)) throw new Error(`the schema has no description of ${gate}`);
    return text.replace(pattern, `$1${base}${growth} unless given`);
  }, schema);
}

/** Returns the guide with the default in the last cell of each row that names a gate, or a gate of both families. */
export function guideWithDefaults(guide) {
  return guide.replaceAll(
    /^\| `(max\w+)`(, `…(IPv6)`|, `(max\w+)`)?(.*) \| .* \|$/gm,
    (_, gate, second = '', ...rest) => {
      const [suffix, other, meaning] = rest;
      const gates = [gate, ...(suffix ? [gate.replace('IPv4', suffix)] : []), ...(other ? [other] : [])];
      const texts = gates.map((name) => {
        const limit = DEFAULT_GATES[name];
        if (limit === undefined) throw new Error(`docs/rebuild.md has a gate that there is not: ${name}`);
        return (typeof limit === 'number' ? [limit] : Object.values(limit))
          .map((one) => gateText(name, one))
          .join(' + ');
      });
      return `| \`${gate}\`${second}${meaning} | ${[...new Set(texts)].join('; ')} |`;
    },
  );
}
