// The country of each client in Next.js: proxy.js of a project (before Next.js 16, middleware.js with the function middleware)
import { load } from '@ipatlas/lookup';
import { NextResponse } from 'next/server';

const database = load(); // or load('https://…/db/country.ipc') for newer data

export async function proxy(request) {
  const headers = new Headers(request.headers);
  const client = headers.get('x-forwarded-for')?.split(',').at(-1).trim() ?? ''; // what the proxy in front has seen
  const country = (await database).country(client);
  headers.set('x-country', country?.country_code ?? ''); // in place of what the client sent under this name
  return NextResponse.next({ request: { headers } });
}
