// Starts Swagger UI, which swagger-ui-bundle.js defines.
window.SwaggerUIBundle({ url: 'openapi.json', domNode: document.getElementById('docs'), deepLinking: true });
