// The page: asks every second, and shows what has changed.

const PERIOD = 1000;
const CALM_PERIOD = 5000;
const PATIENCE = 8000;
const token = new URLSearchParams(location.search).get("token");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const at = (id) => document.getElementById(id);
const page = { run: null, mark: null, paused: false, charts: [], data: null, clock: 0, joins: null, shown: 0, states: "" };

async function ask(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, signal: AbortSignal.timeout(PATIENCE), cache: "no-store" });
  if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).trim()}`);
  return answer.json();
}

function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

function built(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

// Gives a node a child for each of the items, which `fill` puts into it.
function fit(node, items, made, fill) {
  while (node.children.length > items.length) node.lastElementChild.remove();
  items.forEach((item, place) => fill(node.children[place] || node.appendChild(made()), item));
}

function list(queries) {
  show(at("none"), !queries.length);
  const made = () => built("li", built("a", built("span"), " ", built("span"), " ", built("span")));
  fit(at("queries"), queries, made, (item, query) => {
    const link = item.firstChild;
    const [name, state, rate] = link.children;
    link.href = `#${query.run}`;
    name.className = "name";
    setText(name, query.name);
    setText(state, query.state);
    state.className = `state ${query.state}`;
    rate.className = "rate";
    setText(rate, query.told);
    if (query.run === page.run) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
}

// The query in view: the one that the address names, or else one that runs.
function chosen(queries) {
  const named = queries.find((each) => `#${each.run}` === location.hash);
  const before = queries.find((each) => each.run === page.run);
  const active = queries.find((each) => !["ended", "stopped", "failed"].includes(each.state));
  return named || before || active || queries[queries.length - 1];
}

function turnTo(run) {
  if (page.run === run) return;
  Object.assign(page, { run, mark: null, charts: [], data: null, joins: null });
  at("charts").replaceChildren();
  at("pictures").replaceChildren();
  at("explained").replaceChildren();
}

function rows(table, told, marked) {
  const body = table.tBodies[0] || table.createTBody();
  const head = () => Object.assign(built("th"), { scope: "col" });
  fit(table.tHead || table.createTHead(), [told.head], () => built("tr"), (row, line) => fit(row, line, head, setText));
  fit(body, told.rows, () => built("tr"), (row, line) => fit(row, line, () => built("td"), setText));
  [...body.rows].forEach((row, number) => row.classList.toggle("far", (marked || []).includes(number)));
}

function tiles(told) {
  const made = () => Object.assign(built("div", built("b"), built("span")), { className: "tile" });
  fit(at("tiles"), told, made, (tile, texts) => texts.forEach((text, place) => setText(tile.children[place], text)));
}

// Adds the new points of the last hour to those that are known.
function taken(history) {
  if (history.whole || !page.data) {
    page.data = history;
    return;
  }
  const data = page.data;
  const first = history.begins.length ? history.begins[0] : Infinity;
  let kept = data.begins.findIndex((each) => each >= first);
  if (kept < 0) kept = data.begins.length;
  const old = data.ends.findIndex((each) => each > page.clock - HOUR - PERIOD / 1000);
  const from = Math.max(0, Math.min(old, kept));
  const joined = (before, after) => before.slice(from, kept).concat(after);
  const values = {};
  for (const [key, columns] of Object.entries(history.values)) {
    const before = data.values[key] || [];
    const nothing = new Array(data.begins.length).fill(null);
    values[key] = columns.map((column, number) => joined(before[number] || nothing, column));
  }
  page.data = {
    width: history.width,
    begins: joined(data.begins, history.begins),
    ends: joined(data.ends, history.ends),
    values,
  };
}

function charts(specs) {
  const same = (chart, spec) => chart && JSON.stringify(chart.spec) === JSON.stringify(spec);
  if (specs.length !== page.charts.length || !specs.every((spec, number) => same(page.charts[number], spec))) {
    const focused = document.activeElement && document.activeElement.closest("[data-chart]");
    page.charts = specs.map((spec) => new Chart(spec, mark));
    at("charts").replaceChildren(...page.charts.map((each) => each.node));
    if (focused) {
      const again = page.charts.find((each) => each.spec.key === focused.dataset.chart);
      if (again) again.frame.focus();
    }
  }
  draw();
}

function draw() {
  if (page.data) page.charts.forEach((each) => each.draw(page.data, page.clock, page.mark));
}

function mark(time) {
  page.mark = time;
  draw();
}

function places(texts) {
  for (const node of document.querySelectorAll("[data-live]")) setText(node, texts[node.dataset.live] || "–");
}

// Markup of the EXPLAIN page, in which every text is escaped where it is made.
function put(node, markup) {
  const parsed = new DOMParser().parseFromString(markup, "text/html");
  node.replaceChildren(...parsed.body.childNodes);
  for (const each of node.querySelectorAll("figure, .scroll")) {
    each.tabIndex = 0;
    each.setAttribute("role", "region");
    const title = each.querySelector("title, caption, th");
    each.setAttribute("aria-label", title ? title.textContent : "drawing");
  }
}

async function plans(told) {
  const joins = told.joins.join();
  const known = told.joins.length > 0;
  show(at("plan"), known);
  show(at("explained-part"), known);
  if (page.joins === joins) return;
  if (known) {
    const plan = await ask(`api/queries/${told.run}/plan`);
    if (page.run !== told.run) return;
    put(at("pictures"), plan.pictures);
    put(at("explained"), plan.explained);
  }
  page.joins = joins;
}

function about(told) {
  const since = `since ${new Date(told.started * 1000).toLocaleString("en-GB")}`;
  const parts = [since, told.sink ? `into ${told.sink}` : "", told.plans.length ? `plan ${told.plans.join(" · ")}` : ""];
  if (told.checkpoint) parts.push(`checkpoint ${told.checkpoint}`);
  return parts.filter((each) => each).join(" · ");
}

async function query(told) {
  show(at("query"), true);
  setText(at("name"), told.name);
  setText(at("state"), told.state);
  at("state").className = `state ${told.state}`;
  document.title = `${told.name}: ${told.state}`;
  setText(at("about"), about(told));
  setText(at("error"), told.error || "");
  show(at("error"), Boolean(told.error));
  setText(at("note"), told.note);
  show(at("note"), Boolean(told.note));
  tiles(told.tiles);
  show(at("streams-part"), told.streams.rows.length > 0);
  rows(at("streams"), told.streams);
  show(at("state-by-stream-part"), told.state_by_stream.rows.length > 0);
  rows(at("state-by-stream"), told.state_by_stream);
  show(at("nodes-part"), told.nodes.rows.length > 0);
  rows(at("nodes"), told.nodes);
  show(at("sites-part"), told.sites.rows.length > 0);
  rows(at("sites"), told.sites);
  show(at("compared-part"), told.compared.rows.length > 0);
  rows(at("compared"), told.compared, told.compared.far);
  setText(at("statement"), told.statement || "");
  show(at("statement-part"), Boolean(told.statement));
  page.clock = told.clock;
  taken(told.history);
  charts(told.charts);
  await plans(told);
  places(told.live);
}

// Shows what has changed; whoever wants little motion sees it every five seconds, and at once where a state changes.
async function look() {
  const { queries } = await ask("api/queries");
  const current = chosen(queries);
  const states = queries.map((each) => each.run + each.state).join();
  if (calm.matches && states === page.states && Date.now() - page.shown < CALM_PERIOD) return;
  page.shown = Date.now();
  page.states = states;
  setText(at("clock"), `as of ${timeOf(page.shown / 1000, true)}`);
  if (current) turnTo(current.run);
  list(queries);
  if (!current) return;
  const last = page.data && page.data.begins.length ? page.data.begins[page.data.begins.length - 1] : null;
  const since = last === null ? "" : `?since=${last - 0.001}&width=${page.data.width}`;
  const told = await ask(`api/queries/${current.run}${since}`);
  if (page.run !== told.run) return;
  await query(told);
}

async function again() {
  if (!page.paused && !document.hidden) {
    try {
      await look();
      show(at("gone"), false);
    } catch (error) {
      const why = error.name === "TypeError" || error.name === "TimeoutError" ? "it has ended, or cannot be reached" : error.message;
      if (at("gone").hidden) setText(at("gone"), `No answer since ${timeOf(Date.now() / 1000, true)}: ${why}. Below is the last that it told.`);
      show(at("gone"), true);
    }
  }
  setTimeout(again, PERIOD);
}

at("pause").addEventListener("click", () => {
  page.paused = !page.paused;
  at("pause").setAttribute("aria-pressed", String(page.paused));
  setText(at("pause"), page.paused ? "Go on" : "Pause");
});
addEventListener("hashchange", () => {
  page.shown = 0;
  look().catch(() => {});
});
addEventListener("resize", draw);
again();
