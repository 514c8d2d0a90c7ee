'use strict';

// Returns the settings of a project. See README.md.
function load(defaults, ...layers) {
  return layers.reduce((settings, layer) => merge(settings, layer), { ...defaults });
}

function isSection(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// Adds the keys of a layer to the settings.
function merge(settings, layer) {
  for (const key of Object.keys(layer)) {
    if (key === '__proto__') {
      continue;
    }
    if (layer[key] === null) {
      delete settings[key];
    } else if (isSection(layer[key])) {
      settings[key] = merge(isSection(settings[key]) ? settings[key] : {}, layer[key]);
    } else {
      settings[key] = layer[key];
    }
  }
  return settings;
}

module.exports = { load };
