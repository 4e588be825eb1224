# Everything from a fresh clone; a target does only what is not yet done.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: run test db bench clean install compile

install: node_modules/.installed
node_modules/.installed: package.json package-lock.json
	npm ci
	touch $@

compile: install
	npm run --silent build

db: compile
	node dist/src/cli/main.js build --offline

run: db
	node dist/src/cli/main.js serve --port 8080 --dev-key data/dev.key

test: compile
	npm run --silent lint
	npm run --silent types
	npm test --silent

bench: compile
	npm install --prefix bench --no-package-lock --silent
	node bench/run.js

clean:
	rm -rf node_modules bench/node_modules dist data/cache data/releases data/current data/tmp data/rejects.ndjson data/lock.sqlite* data/keys.sqlite* data/dev.key*
