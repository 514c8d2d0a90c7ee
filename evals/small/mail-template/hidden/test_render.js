'use strict';

const assert = require('assert');
const { render } = require('../template.js');

let failed = 0;
function check(what, text, values, expected) {
  try {
    assert.strictEqual(render(text, values), expected);
  } catch (error) {
    failed += 1;
    console.log(`${what}: ${error.message}`);
  }
}

check('escaped', '{{a}}', { a: `<b a="1" b='2'>&</b>` }, '&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;&lt;/b&gt;');
check('escaped once', '{{a}}', { a: '&lt;' }, '&amp;lt;');
check('as it is', '{{{a}}}|{{a}}', { a: '<i>&' }, '<i>&|&lt;i&gt;&amp;');
check('number', '{{a}} {{{a}}}', { a: 0 }, '0 0');
check('empty value', '[{{a}}]', { a: '' }, '[]');
check('template is kept', '<p>&{a} {{ x }}</p>', {}, '<p>&{a} {{ x }}</p>');
check('name in a value', '{{a}} {{b}}', { a: '{{b}}', b: 'x' }, '{{b}} x');
check('name in a later value', '{{a}} {{b}}', { b: '{{a}}', a: 'x' }, 'x {{a}}');
check('name in a value as it is', '{{{a}}} {{b}}', { a: '{{{b}}}', b: 'x' }, '{{{b}}} x');
check('unknown name in a value', '{{a}}', { a: '{{nobody}}' }, '{{nobody}}');
check('name from two values', '{{a}}{{b}}', { a: '{{', b: 'c}}', c: 'x' }, '{{c}}');
check('dollar signs', '{{a}}|{{{a}}}', { a: "$1 $$ $' $`" }, '$1 $$ $&#39; $`|' + "$1 $$ $' $`");
check('dollar and ampersand', '{{{a}}}', { a: '$&' }, '$&');

for (const text of ['{{nobody}}', '{{{nobody}}}', '{{constructor}}', '{{toString}}']) {
  try {
    assert.throws(() => render(text, { a: 1 }), /unknown name: (nobody|constructor|toString)/);
  } catch (error) {
    failed += 1;
    console.log(`${text} is no error: ${error.message}`);
  }
}
process.exit(failed ? 1 : 0);
