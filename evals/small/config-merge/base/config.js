'use strict';

// Returns the settings of a project. See README.md.
function load(defaults, ...layers) {
  return layers.reduce((settings, layer) => merge(settings, layer), { ...defaults });
}

// Adds the keys of a layer to the settings.
function merge(settings, layer) {
  for (const key of Object.keys(layer)) {
    if (layer[key] === null) {
      delete settings[key];
    } else {
      settings[key] = layer[key];
    }
  }
  return settings;
}

module.exports = { load };
