// Exits 0 if a line is broken at a no-break space.
'use strict';

const { wrap } = require('../wrap.js');

process.exit(wrap('a 10\u00a0km', 5) === 'a\n10\u00a0km' ? 1 : 0);
