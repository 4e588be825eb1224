/** The documentation of the API as HTML: Swagger UI, which reads the OpenAPI document. */
import { html } from '../../html.js';
import type { PageContent } from './lookup-html.js';

/** Returns the page. It has no frame, because Swagger UI's styles change everything on a page. */
export function docsHtml({ assets }: Pick<PageContent, 'assets'>): string {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>ipatlas: reference of the API</title>
<link rel="icon" href="${assets}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${assets}/swagger/swagger-ui.css">
<script defer src="${assets}/swagger/swagger-ui-bundle.js"></script>
<script defer src="${assets}/docs.js"></script>
</head>
<body>
<main id="docs"><noscript><p>This page needs JavaScript. The <a href="openapi.json">OpenAPI document</a> is JSON.</p></noscript></main>
</body>
</html>
`.text;
}
