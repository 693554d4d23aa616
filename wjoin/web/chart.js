// A drawing of the last hour: lines, or areas one on the other, with a mark that keys and pointers move.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 150;
const LEFT = 58;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
const HOUR = 3600;
const LEAST_SPAN = 60;
const TIME_STEPS = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

class Chart {
  // `moved` is called with the time at which the mark shall stand, null for none.
  constructor(spec, moved) {
    this.spec = spec;
    this.moved = moved;
    this.node = document.createElement("figure");
    this.node.className = "chart";
    this.node.dataset.chart = spec.key;
    this.title = document.createElement("figcaption");
    this.frame = document.createElement("div");
    this.frame.tabIndex = 0;
    this.frame.setAttribute("role", "slider");
    this.frame.setAttribute("aria-label", `${spec.title}: moment`);
    this.legend = document.createElement("ul");
    this.legend.className = "series";
    this.names = spec.series.map((name, number) => this.entry(name, number));
    this.node.append(this.title, this.frame, this.legend);
    this.frame.addEventListener("keydown", (event) => this.key(event));
    this.frame.addEventListener("pointermove", (event) => this.point(event));
    this.frame.addEventListener("pointerleave", () => this.moved(null));
    this.frame.addEventListener("blur", () => this.moved(null));
  }

  entry(name, number) {
    const item = document.createElement("li");
    const sign = element("svg", { width: 14, height: 10, "aria-hidden": "true" });
    const shape = this.spec.stacked
      ? element("rect", { width: 14, height: 10, rx: 2, class: `area s${number % 8}` })
      : element("line", { x1: 0, x2: 14, y1: 5, y2: 5, class: `line s${number % 8}` });
    sign.append(shape);
    const value = document.createElement("b");
    item.append(sign, ` ${name} `, value);
    this.legend.append(item);
    return { name, value };
  }

  key(event) {
    const times = this.data.ends;
    const at = this.place === null ? times.length : this.place;
    const moves = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1 };
    Object.assign(moves, { PageUp: at - 10, PageDown: at + 10, Home: 0, End: times.length - 1 });
    if (event.key === "Escape") this.moved(null);
    else if (event.key in moves && times.length) {
      this.moved(times[Math.max(0, Math.min(times.length - 1, moves[event.key]))]);
    } else return;
    event.preventDefault();
  }

  point(event) {
    if (!this.data.ends.length) return;
    const box = this.frame.getBoundingClientRect();
    const time = this.start + ((event.clientX - box.left - LEFT) / this.inner) * (this.end - this.start);
    this.moved(time);
  }

  // Draws anew: `data` are times and columns of values, `clock` the time at its right end, `mark` that of the mark.
  draw(data, clock, mark) {
    this.data = data;
    const columns = data.values[this.spec.key] || [];
    this.end = clock;
    this.start = Math.max(clock - HOUR, Math.min(data.begins.length ? data.begins[0] : clock, clock - LEAST_SPAN));
    const width = Math.max(220, Math.round(this.frame.clientWidth || 360));
    this.inner = width - LEFT - RIGHT;
    const sums = this.spec.stacked ? stacked(columns) : columns;
    const most = Math.max(...sums.map((column) => column.reduce((a, b) => Math.max(a, b || 0), 0)), 0);
    const ticks = most > 0 ? steps(most, 3, this.spec.unit) : [0];
    this.most = ticks[ticks.length - 1] || 1;
    const svg = element("svg", { class: "lines", width, height: HEIGHT, "aria-hidden": "true" });
    for (const tick of ticks) {
      const y = this.y(tick);
      svg.append(element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
      const label = told(tick, this.spec.unit, this.most);
      svg.append(element("text", { class: "tick", x: LEFT - 6, y: y + 4, "text-anchor": "end" }, label));
    }
    this.times(svg);
    if (this.spec.stacked) this.areas(svg, sums);
    else columns.forEach((column, number) => svg.append(this.line(column, number)));
    this.place = mark === null ? null : nearest(data.ends, mark);
    if (this.place !== null) {
      const x = this.x(data.ends[this.place]);
      svg.append(element("line", { class: "mark", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
    }
    this.frame.replaceChildren(svg);
    this.tell(columns);
  }

  tell(columns) {
    const last = this.data.ends.length - 1;
    const place = this.place === null ? last : this.place;
    const words = this.names.map(({ name, value }, number) => {
      let at = place;
      // Without a mark the last value that there is; a time without micro-batches has none of some.
      while (this.place === null && at > 0 && (columns[number] || [])[at] === null) at -= 1;
      const found = told((columns[number] || [])[at], this.spec.unit);
      setText(value, found);
      return `${name} ${found}`;
    });
    const time = last < 0 ? "nothing yet" : timeOf(this.data.ends[place], true);
    this.node.classList.toggle("marked", this.place !== null);
    setText(this.title, `${this.spec.title}${this.unit()}${this.place === null ? "" : ` at ${time}`}`);
    this.frame.setAttribute("aria-valuemin", 0);
    this.frame.setAttribute("aria-valuemax", Math.max(0, last));
    this.frame.setAttribute("aria-valuenow", Math.max(0, place));
    this.frame.setAttribute("aria-valuetext", `${time}: ${words.join(", ")}`);
  }

  unit() {
    return ["", "s", "bytes"].includes(this.spec.unit) ? "" : `, ${this.spec.unit}`;
  }

  x(time) {
    return LEFT + ((time - this.start) / (this.end - this.start)) * this.inner;
  }

  y(value) {
    return HEIGHT - BOTTOM - (value / this.most) * (HEIGHT - TOP - BOTTOM);
  }

  times(svg) {
    const most = Math.max(2, Math.floor(this.inner / 90));
    const step = TIME_STEPS.find((each) => (this.end - this.start) / each <= most) || HOUR;
    for (let time = Math.ceil(this.start / step) * step; time <= this.end; time += step) {
      const x = this.x(time);
      if (x < LEFT + 12 || x > LEFT + this.inner - 12) continue;
      svg.append(element("line", { class: "grid", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
      const label = timeOf(time, step < 60);
      svg.append(element("text", { class: "tick", x, y: HEIGHT - 6, "text-anchor": "middle" }, label));
    }
  }

  line(column, number) {
    const parts = [];
    let drawn = false;
    column.forEach((value, place) => {
      if (value === null || this.data.ends[place] < this.start) {
        drawn = false;
        return;
      }
      parts.push(`${drawn ? "L" : "M"}${this.x(this.data.ends[place]).toFixed(1)} ${this.y(value).toFixed(1)}`);
      drawn = true;
    });
    // One value alone is a dot: a path of no length has round ends.
    if (parts.length === 1) parts.push("h0.1");
    return element("path", { class: `line s${number % 8}`, d: parts.join("") });
  }

  areas(svg, sums) {
    const base = sums.length ? sums[0].map((value) => (value === null ? null : 0)) : [];
    [...sums.keys()].reverse().forEach((number) => {
      const under = number ? sums[number - 1] : base;
      const bars = [];
      sums[number].forEach((value, place) => {
        if (value === null || this.data.ends[place] < this.start) return;
        const right = this.x(this.data.ends[place]);
        const left = Math.max(LEFT, Math.min(right - 2, this.x(this.data.begins[place])));
        const [top, bottom] = [this.y(value), this.y(under[place])];
        bars.push(`M${left.toFixed(1)} ${bottom.toFixed(1)}V${top.toFixed(1)}H${right.toFixed(1)}V${bottom.toFixed(1)}Z`);
      });
      svg.append(element("path", { class: `area s${number % 8}`, d: bars.join("") }));
    });
  }
}

function stacked(columns) {
  const sums = [];
  columns.forEach((column, number) => {
    sums.push(column.map((value, place) => (value === null ? null : value + (number ? sums[number - 1][place] : 0))));
  });
  return sums;
}

function nearest(times, time) {
  let best = null;
  times.forEach((each, place) => {
    if (best === null || Math.abs(each - time) < Math.abs(times[best] - time)) best = place;
  });
  return best;
}
