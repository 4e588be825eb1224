import {jsonParser} from 'stream-json/core/parser.js';
const p=jsonParser({streamValues:false});
console.log(p('{"a":[1e400,123456789012345678901,tr'),p('ue, 5'));
