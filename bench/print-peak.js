// For `node --import`: prints the peak of the process's resident memory on the way out.
import { peakMegabytes } from './measure.js';

process.on('exit', () => console.error('peak', peakMegabytes()));
