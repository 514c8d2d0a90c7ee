'use strict';

const assert = require('assert');
const fs = require('fs');
const { render } = require('../template.js');

assert.strictEqual(render('Hello {{name}}, {{name}}!', { name: 'Max' }), 'Hello Max, Max!');
assert.strictEqual(render('{{a}}{{b}}', { a: 1, b: 'x' }), '1x');
assert.throws(() => render('{{other}}', { name: 'Max' }), /unknown name: other/);
const mail = render(fs.readFileSync('templates/welcome.html', 'utf8'), { name: 'Max', number: 7 });
assert.ok(mail.includes('<p>Welcome Max!</p>\n<p>Your number is 7.</p>'));
console.log('ok');
