// Exits 0 if large numbers are no longer compared exactly.
'use strict';

const { compare } = require('../semver.js');

process.exit(compare('1.0.9007199254740993', '1.0.9007199254740992') === 1 && compare('1.9.0', '1.10.0') === -1 ? 1 : 0);
