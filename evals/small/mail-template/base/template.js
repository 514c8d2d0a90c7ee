'use strict';

// Returns the template with all names replaced. See README.md.
function render(text, values) {
  let result = text;
  for (const [name, value] of Object.entries(values)) {
    result = result.split(`{{${name}}}`).join(String(value));
  }
  const unknown = /\{\{(\w+)\}\}/.exec(result);
  if (unknown) {
    throw new Error(`unknown name: ${unknown[1]}`);
  }
  return result;
}

module.exports = { render };
