/** The data of the package: a compact form with gzip, in Base64. scripts/make-lookup.js makes the module. */
declare const data: string;
export default data;
