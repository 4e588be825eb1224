/** Builds in tests check few rows of each file; `make soak` checks as many as users' builds do. test/build/check.test.ts has fewer. */
import { RowSample } from '../../pipeline/checking/sample.js';

RowSample.rowsOfFile = 100;
