'use strict';

// Returns the settings of a project. See README.md.
function load(defaults, ...layers) {
  return layers.reduce((settings, layer) => merged(settings, layer), copied(defaults));
}

function isSection(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// Returns the defaults with sections of their own. A null stays a value.
function copied(section) {
  return Object.fromEntries(Object.entries(section).map(([key, value]) => [key, isSection(value) ? copied(value) : value]));
}

// Returns a new section with the keys of both.
function merged(settings, layer) {
  const result = { ...settings };
  for (const key of Object.keys(layer)) {
    const value = layer[key];
    if (key === '__proto__') {
      continue;
    }
    if (value === null) {
      delete result[key];
    } else if (isSection(value)) {
      result[key] = merged(isSection(result[key]) ? result[key] : {}, value);
    } else {
      result[key] = value;
    }
  }
  return result;
}

module.exports = { load };
