"use strict";
// Numbers and times as people read them.

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const YEAR = 31557600;
const DAY = 86400;

// From which size on a unit is taken, what one of it is, its name; the largest first.
const SPANS = [[2 * YEAR, YEAR, "years"], [2 * DAY, DAY, "d"], [7200, 3600, "h"], [90, 60, "min"], [1, 1, "s"], [0, 0.001, "ms"]];
const SIZES = [[1e12, 1e12, "TB"], [1e9, 1e9, "GB"], [1e6, 1e6, "MB"], [1e3, 1e3, "kB"], [0, 1, "B"]];

// One of the unit in which a number of this size is best told, and its name.
function unitOf(size, unit) {
  const units = { s: SPANS, bytes: SIZES }[unit];
  return units ? units.find(([least]) => size >= least).slice(1) : [1, ""];
}

function plainNumber(value) {
  return Math.abs(value) < 1000 ? String(Number(value.toPrecision(3))) : compact.format(value);
}

// A number with its unit, which is chosen by the size of `scale`, or of the number itself.
function told(value, unit, scale) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(scale === undefined ? value : scale);
  const [one, name] = size === 0 && unit === "s" ? [1, "s"] : unitOf(size, unit);
  return `${plainNumber(value / one)} ${name}`.trim();
}

function timeOf(seconds, exact) {
  return (exact ? clockSeconds : clockTime).format(new Date(seconds * 1000));
}

// Round steps in the unit of the largest, from 0 to the end of a scale: about `count` of them.
function steps(most, count, unit) {
  const [one] = unitOf(most, unit);
  const rough = most / one / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = one * power * [1, 2, 2.5, 5, 10].find((each) => each * power >= rough * 0.999);
  const found = [];
  for (let each = 0; each < most + step * 0.999; each += step) found.push(each);
  return found;
}
