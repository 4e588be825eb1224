# Everything from a fresh clone. A target does only what has not been done yet.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help run check test soak db bench site truth clean distclean install compile pack

# Native modules fit one version of Node's binary interface, so each version has its own stamp.
INSTALLED := node_modules/.installed-$(shell node -p process.versions.modules)
COMPILED := dist/.compiled
# Tools of single tasks, which "make run" does not need, have folders of their own.
SITE_INSTALLED := site/node_modules/.installed
OPENAPI_INSTALLED := test/openapi/node_modules/.installed
# Folders are listed as well: their times change when a file is removed.
SOURCES := $(shell find src pipeline scripts/*.js) data/reference/countries.csv tsconfig.json tsconfig.build.json package.json

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

run: db ## build the database, make a key, serve on http://localhost:8080
	node dist/src/cli/start.cjs serve --data data --host 127.0.0.1 --port 8080 --dev-key data/dev.key --sign-up open

test: compile $(OPENAPI_INSTALLED) ## lint, check the types, run all tests but the long ones
	npm run --silent lint
	npm run --silent types
	npm test --silent

# BASE=main also takes what was committed since main.
check: compile $(OPENAPI_INSTALLED) ## lint, check the types, run the tests of what was changed since the last commit
	npm run --silent lint
	npm run --silent types
	npx vitest run --changed $(BASE) --passWithNoTests

soak: compile site ## the long tests: random input, kills, much memory
	npm install --prefix test/soak/runtimes --no-package-lock --silent
	rm -rf test/soak/windows/node_modules/ipatlas test/soak/windows/node_modules/@ipatlas
	npm install --prefix test/soak/windows --force --install-links --ignore-scripts --no-package-lock --silent
	npm install --prefix bench --no-package-lock --silent
	npx vitest run --config vitest.soak.config.ts

db: compile ## build and publish the database
	node dist/src/cli/start.cjs build --data data --offline

bench: compile ## compare the speed with what you would use instead
	npm install --prefix bench --no-package-lock --silent
	node bench/run.js

site: compile $(SITE_INSTALLED) ## build the documentation's site, site/dist
	node site/build.js

truth: compile ## measure how often each source and merge strategy is right
	npm install --prefix truth --no-package-lock --silent
	node truth/run.js
	node truth/logs.js seed files

install: $(INSTALLED) ## install the dependencies
$(INSTALLED): package.json package-lock.json
	node scripts/install.js
	touch $@

$(SITE_INSTALLED): site/package-lock.json
	npm ci --prefix site --ignore-scripts --silent
	touch $@

$(OPENAPI_INSTALLED): test/openapi/package.json
	npm install --prefix test/openapi --no-package-lock --ignore-scripts --silent
	touch $@

compile: $(COMPILED) ## compile the TypeScript and the kernel
$(COMPILED): $(INSTALLED) $(SOURCES)
	rm -rf dist
	npm run --silent build
	touch $@

pack: compile ## pack both npm packages, ipatlas and @ipatlas/lookup, into dist/packages
	rm -rf dist/packages && mkdir dist/packages
	npm pack --silent --ignore-scripts --pack-destination dist/packages . ./dist/lookup

clean: ## remove what was compiled; keys and releases stay
	rm -rf dist

distclean: ## remove all that git ignores: packages, keys, releases
	git clean -ffdXq
