'use strict';

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escapeHtml(text) {
  return text.replace(/[&<>"']/g, (sign) => ESCAPES[sign]);
}

// Returns the template with all names replaced. See README.md.
// The template is read once, from start to end, so that values are never searched for names.
function render(text, values) {
  return text.replace(/\{\{\{(\w+)\}\}\}|\{\{(\w+)\}\}/g, (_, raw, escaped) => {
    const name = raw || escaped;
    if (!Object.prototype.hasOwnProperty.call(values, name)) {
      throw new Error(`unknown name: ${name}`);
    }
    const value = String(values[name]);
    return raw ? value : escapeHtml(value);
  });
}

module.exports = { render };
