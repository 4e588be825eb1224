// Asks a server: API_KEY=ipa_... node examples/client.mjs http://localhost:8080/api/ 193.0.6.139 8.8.8.8
import { Client } from 'ipatlas/client';

const [baseUrl, ...addresses] = process.argv.slice(2);
const client = new Client(process.env.API_KEY ?? '', { baseUrl });
for (const [address, result] of Object.entries(await client.batch(addresses))) {
  console.log(address, 'error' in result ? result.error : (result.country_code ?? 'no country'));
}
