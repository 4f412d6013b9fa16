"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
// Okabe and Ito's colours, told apart by the colour-blind; dashes tell the rest.
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
// The page sends nothing anywhere: no button offers it, whatever Plotly's version calls it, and no address is known.
const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "sendChartToCloud", "sendDataToCloud"] };

const GROWTH = at("growth-note").textContent.replace(/\.$/, "");

function make(tag, properties, parent) {
  const element = Object.assign(document.createElement(tag), properties);
  if (parent) parent.append(element);
  return element;
}
function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (!isFinite(value)) return value > 0 ? "inf" : "-inf";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
}
// An infinite parameter is a text in the data: JSON has no such number.
const ENDLESS = new Map([["inf", Infinity], ["-inf", -Infinity]]);
const numberOf = (value) => (ENDLESS.has(value) ? ENDLESS.get(value) : Number(value));
const isNumber = (value) => typeof value === "number" || ENDLESS.has(value);
const isThere = (value) => value !== null && value !== undefined;
function fade(colour, alpha) {
  const parts = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  return `rgba(${parts.join(",")},${alpha})`;
}
const look = (agent) => {
  const k = data.agents.indexOf(agent);
  return { colour: COLOURS[k % COLOURS.length], dash: DASHES[Math.floor(k / COLOURS.length) % DASHES.length] };
};
function layout(xtitle, ytitle, log) {
  const axis = { type: log ? "log" : "linear", automargin: true, gridcolor: "#eceff2", zerolinecolor: "#c9ced4",
    exponentformat: "power", minexponent: 6 };
  return {
    xaxis: { ...axis, title: { text: xtitle } }, yaxis: { ...axis, title: { text: ytitle } },
    hovermode: "x unified", margin: { l: 10, r: 10, t: 30, b: 10 }, paper_bgcolor: "#fff", plot_bgcolor: "#fff",
    // At the bottom of the picture, which makes room for it: it never lies on the axis' title.
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, xanchor: "left" }, font: { size: 13 },
  };
}
// The slope of log y over log x where both are positive, over the second half of log x.
function exponent(x, y) {
  let pairs = x.map((v, k) => [Math.log(v), Math.log(y[k])]).filter(([a, b]) => isFinite(a) && isFinite(b));
  if (pairs.length < 2) return null;
  const n = pairs.length, mx = pairs.reduce((s, p) => s + p[0], 0) / n, my = pairs.reduce((s, p) => s + p[1], 0) / n;
  const up = pairs.reduce((s, p) => s + (p[0] - mx) * (p[1] - my), 0);
  const down = pairs.reduce((s, p) => s + (p[0] - mx) ** 2, 0);
  return down > 0 ? up / down : null;
}
const words = (agent, slope) => agent + (slope === null ? "" : `, exponent ${slope.toFixed(2)}`);

const chosen = () => ({
  env: at("env").value, quantity: at("quantity").value, comparator: at("comparator").value,
  log: at("axes").value === "log", against: at("against").value, run: Number(at("run").value),
  agents: [...at("agents").querySelectorAll("input:checked")].map((box) => box.value),
});
const kindOf = (choice) => (choice.quantity === "reward" ? "reward" : choice.comparator);
const nameOf = (choice) => (choice.quantity === "reward" ? data.envs[choice.env].what : "regret");
const opponent = (choice) => data.envs[choice.env].opponents[choice.comparator] || `regret against ${data.comparators[choice.comparator]}`;
const against = (choice) => (choice.quantity === "reward" || !choice.comparator ? "" : `${opponent(choice)}; `);
// The horizons that the curves, those of the longest one, leave out.
function leftOut(env) {
  const shown = new Set(Object.values(env.curves).map((curve) => curve.T));
  const others = [...new Set(env.final.map((row) => row.T))].filter((T) => !shown.has(T)).sort((a, b) => a - b);
  return others.length ? `longest horizon, T=${[...shown].join(", ")} (not drawn: T=${others.join(", ")}); ` : "";
}

function drawCurves(choice) {
  const env = data.envs[choice.env], kind = kindOf(choice), traces = [];
  for (const agent of choice.agents) {
    const curve = env.curves[agent];
    if (!curve || !curve[kind]) continue;
    const { colour, dash } = look(agent), line = curve[kind], group = { legendgroup: agent, x: curve.t };
    const half = Math.floor(curve.t.length / 2);
    const slope = choice.log ? exponent(curve.t.slice(half), line.mean.slice(half)) : null;
    const edge = { ...group, mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
    traces.push({ ...edge, y: line.low }, { ...edge, y: line.high, fill: "tonexty", fillcolor: fade(colour, 0.2) });
    traces.push({ ...group, y: line.mean, name: words(agent, slope), mode: "lines",
      line: { color: colour, dash, width: 2 }, hovertemplate: "%{y:.5g}" });
  }
  if (choice.log && choice.quantity === "regret" && env.bound.value.some((v) => v !== null)) {
    traces.push({ x: env.bound.T, y: env.bound.value, name: "Theorem 1", mode: "lines",
      line: { color: "#777", dash: "dash", width: 1.5 }, hovertemplate: "%{y:.3g}" });
  }
  Plotly.react("curves", traces, layout("step", nameOf(choice), choice.log), CONFIG);
  at("curves-note").textContent = !traces.length ? "There is nothing to show." : `${choice.env}; ${against(choice)}${leftOut(env)}bands: ${data.band}` +
    (choice.log ? "; exponents are fitted to the second half of the points" : "");
}
function drawGrowth(choice) {
  const env = data.envs[choice.env], regrets = env.final.filter((row) => row[choice.comparator]);
  const several = new Set(regrets.map((row) => row.T)).size > 1;
  at("growth-part").hidden = !several;
  if (!several) return;
  at("growth-note").textContent = `${GROWTH}; ${opponent(choice)}.`;
  const traces = [];
  for (const agent of choice.agents) {
    const rows = env.final.filter((row) => row.agent === agent && row[choice.comparator]);
    rows.sort((one, two) => one.T - two.T);
    const x = rows.map((row) => row.T), y = rows.map((row) => row[choice.comparator].mean), { colour, dash } = look(agent);
    traces.push({ x, y, name: words(agent, exponent(x, y)), mode: "lines+markers",
      line: { color: colour, dash, width: 2 }, hovertemplate: "%{y:.5g}" });
  }
  const T = env.final.map((row) => row.T), least = Math.min(...T), most = Math.max(...T);
  const keep = env.bound.T.map((t, k) => k).filter((k) => env.bound.T[k] >= least && env.bound.T[k] <= most);
  if (keep.some((k) => env.bound.value[k] !== null)) {
    traces.push({ x: keep.map((k) => env.bound.T[k]), y: keep.map((k) => env.bound.value[k]), name: "Theorem 1",
      mode: "lines", line: { color: "#777", dash: "dash", width: 1.5 }, hovertemplate: "%{y:.3g}" });
  }
  Plotly.react("growth", traces, layout("horizon T", "final regret", true), CONFIG);
}
// Final values over a parameter, where all others are those of the chosen environment.
function drawAgainst(choice) {
  if (!choice.against) return;
  const name = choice.against, mine = data.envs[choice.env].parameters;
  const others = data.parameters.filter((p) => p !== name && p !== "T");
  const same = Object.values(data.envs).filter((env) => others.every((p) => env.parameters[p] === mine[p]));
  // On one line all have the same comparator.
  if (!choseComparator && same.some((env) => env.comparator === "best cycle")) choice = { ...choice, comparator: "best cycle" };
  const kind = kindOf(choice), longest = Math.max(...data.envs[choice.env].final.map((row) => row.T));
  const traces = [], byNumber = (one, two) => (one === two ? 0 : numberOf(one) - numberOf(two));
  for (const agent of choice.agents) {
    const points = new Map();
    for (const env of same) {
      for (const row of env.final) {
        if (row.agent !== agent || !row[kind] || (name !== "T" && row.T !== longest)) continue;
        const x = name === "T" ? row.T : env.parameters[name];
        if (!isThere(x)) continue;
        if (!points.has(x)) points.set(x, []);
        points.get(x).push(row[kind]);
      }
    }
    if (!points.size) continue;
    const xs = [...points.keys()].sort(byNumber);
    const mean = (x, key) => points.get(x).reduce((s, v) => s + v[key], 0) / points.get(x).length;
    const y = xs.map((x) => mean(x, "mean")), { colour, dash } = look(agent);
    traces.push({ x: xs, y, name: agent, mode: "lines+markers", line: { color: colour, dash, width: 2 },
      error_y: { type: "data", symmetric: false, array: xs.map((x, k) => mean(x, "high") - y[k]),
        arrayminus: xs.map((x, k) => y[k] - mean(x, "low")), color: colour, thickness: 1.2 },
      hovertemplate: "%{y:.5g}" });
  }
  const axes = layout(name, `final ${nameOf(choice).replace("cumulative ", "")}`, false);
  const every = [...new Set(traces.flatMap((trace) => trace.x))].sort(byNumber);
  // No axis reaches infinity: one place for each value then.
  if (every.some((x) => ENDLESS.has(x))) Object.assign(axes.xaxis, { type: "category", categoryarray: every.map(shown) });
  Plotly.react("against-figure", traces, axes, CONFIG);
  const rest = others.filter((p) => isThere(mine[p])).map((p) => `${p}=${shown(mine[p])}`);
  if (!traces.length) at("against-note").textContent = `There is nothing to show over ${name} with the other parameters of ${choice.env}.`;
  else at("against-note").textContent = `${against(choice)}the other parameters are those of ${choice.env}: ` +
    `${rest.join(", ")}${name === "T" ? "" : `, T=${longest}`}; bars: ${data.band.split(",")[0]}`;
}
// What an agent believes at the end: chances of m and gamma if it does not know them, and theta with its spread.
function drawPosterior(row, box) {
  const believed = row.posterior, { colour } = look(row.agent), parts = [];
  for (const [name, words] of [["memory", "memory m"], ["gamma", "exponent gamma"]]) {
    if (!believed[name]) continue;
    const pairs = Object.entries(believed[name]).map(([x, p]) => [numberOf(x), p]).sort((one, two) => one[0] - two[0]);
    parts.push({ words, side: "probability", type: "bar", x: pairs.map(([x]) => shown(x)), y: pairs.map(([, p]) => p),
      marker: { color: colour }, hovertemplate: "%{x}: %{y:.3f}<extra></extra>" });
  }
  if (believed.theta) {
    parts.push({ words: "coordinate of theta", side: "estimate", mode: "markers", x: believed.theta.map((_, k) => String(k + 1)),
      y: believed.theta, error_y: { type: "data", array: believed.spread || [], color: colour, thickness: 1.2 },
      marker: { color: colour, size: 7 }, hovertemplate: "%{y:.3f}<extra></extra>" });
  }
  if (!parts.length) return;
  const picture = make("div", { className: "picture posterior" }, box), axes = layout("", "", false);
  // Side by side where there is room, else one below the other.
  const beside = box.clientWidth >= 640, n = parts.length, gap = beside ? 0.1 : 0.22;
  picture.style.height = beside ? "210px" : `${60 + 190 * n}px`;
  const domain = (k) => [k / n + (k ? gap / 2 : 0), (k + 1) / n - (k + 1 < n ? gap / 2 : 0)];
  parts.forEach(({ words, side }, k) => {
    const end = k ? String(k + 1) : "", down = n - 1 - k;
    axes[`xaxis${end}`] = { type: "category", anchor: `y${end}`, title: { text: words }, automargin: true,
      domain: beside ? domain(k) : [0, 1], nticks: beside ? 12 : 16, tickangle: 0 };
    axes[`yaxis${end}`] = { anchor: `x${end}`, title: { text: side }, automargin: true, gridcolor: "#eceff2",
      domain: beside ? [0, 1] : domain(down), rangemode: side === "probability" ? "tozero" : "normal" };
  });
  axes.showlegend = false; axes.hovermode = "closest";
  const traces = parts.map(({ words, side, ...trace }, k) => ({ ...trace, xaxis: `x${k ? k + 1 : ""}`, yaxis: `y${k ? k + 1 : ""}` }));
  Plotly.react(picture, traces, axes, CONFIG);
}
function drawBehaviour(choice) {
  const part = at("behaviour");
  part.querySelectorAll(".picture").forEach((picture) => Plotly.purge(picture));
  part.replaceChildren();
  const rows = data.behaviour.filter((row) => row.env === choice.env && row.seed === choice.run && choice.agents.includes(row.agent));
  at("work-note").textContent = rows.length
    ? `The first ${rows[0].actions[0].length} steps of seed ${choice.run} in ${choice.env}: a row for each coordinate of the actions, and below the expected rewards.`
    : "No agent was played again here.";
  const own = (data.own[choice.env] || []).filter((agent) => choice.agents.includes(agent));
  if (own.length) at("work-note").textContent += ` Not shown: ${own.join(", ")}, because agents and environments of your own are not ` +
    "played again: a report runs no code that came with the results.";
  for (const row of rows) {
    const box = make("div", { className: "agent-work" }, part);
    make("h3", { textContent: `${row.agent}: ${row.plans} plans` }, box);
    const picture = make("div", { className: "picture" }, box), d = row.actions.length;
    picture.style.height = `${190 + Math.min(22 * d, 260)}px`;
    const axes = layout("step", "", false);
    axes.hovermode = "closest";
    axes.yaxis = { domain: [0.45, 1], autorange: "reversed", automargin: true, dtick: d <= 12 ? 1 : undefined,
      title: { text: "coordinate" } };
    axes.yaxis2 = { domain: [0, 0.36], automargin: true, title: { text: "reward" }, gridcolor: "#eceff2" };
    axes.xaxis = { automargin: true, anchor: "y2", title: { text: "step" } };
    axes.showlegend = false;
    const steps = row.rewards.map((_, k) => k + 1);
    Plotly.react(picture, [
      { type: "heatmap", x: steps, y: row.actions.map((_, k) => k + 1), z: row.actions, zmin: -1, zmax: 1,
        colorscale: "Cividis", colorbar: { thickness: 10, len: 0.55, y: 0.75 } },
      { type: "bar", x: steps, y: row.rewards, yaxis: "y2", marker: { color: look(row.agent).colour } },
    ], axes, CONFIG);
    if (row.posterior) drawPosterior(row, box);
    if (row.beliefs) make("p", { className: "note", textContent: row.beliefs }, box);
  }
}
// Until somebody chooses, regret is against what says something in the environment.
let choseComparator = false;
function drawAll() {
  const fit = data.envs[at("env").value].comparator;
  if (!choseComparator && fit) at("comparator").value = fit;
  const choice = chosen();
  drawCurves(choice); drawGrowth(choice); drawAgainst(choice); drawBehaviour(choice);
}
function fillTable(table, { columns, rows }) {
  table.replaceChildren();
  const head = make("tr", {}, make("thead", {}, table)), body = make("tbody", {}, table);
  const numeric = columns.map((_, k) => rows.every((row) => row[k] === null || isNumber(row[k])));
  columns.forEach((name, k) => make("th", { textContent: name, className: numeric[k] ? "number" : "", scope: "col" }, head));
  for (const row of rows) {
    const line = make("tr", {}, body);
    row.forEach((value, k) => make("td", { textContent: shown(value), className: numeric[k] ? "number" : "" }, line));
  }
}
function fillSummary() {
  const { columns, rows } = data.summary, table = at("summary"), p = columns.indexOf("p_vs_best");
  const order = { column: -1, direction: 1 };
  const fill = () => {
    const sorted = [...rows];
    if (order.column >= 0) {
      const value = (row) => row[order.column];
      sorted.sort((one, two) => {
        if (value(one) === null || value(two) === null) return (value(one) === null) - (value(two) === null);
        return order.direction * (value(one) < value(two) ? -1 : value(one) > value(two) ? 1 : 0);
      });
    }
    fillTable(table, { columns, rows: sorted });
    [...table.tBodies[0].rows].forEach((line, k) => line.classList.toggle("best", p < 0 || sorted[k][p] === null));
    [...table.tHead.rows[0].cells].forEach((cell, k) => {
      cell.tabIndex = 0;
      if (k === order.column) cell.ariaSort = order.direction > 0 ? "ascending" : "descending";
      const sort = () => {
        order.direction = k === order.column ? -order.direction : 1;
        order.column = k;
        fill();
      };
      cell.addEventListener("click", sort);
      cell.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  };
  fill();
}
function fillFacts() {
  const study = data.facts.study || {}, versions = data.facts.versions || {}, rows = [];
  for (const key of ["seed", "seeds", "T", "record", "spacing"]) if (key in study) rows.push([key, JSON.stringify(study[key])]);
  for (const [name, version] of Object.entries(versions)) rows.push([name, version]);
  for (const [name, value] of Object.entries(data.facts.machine || {})) rows.push([name, value]);
  for (const key of ["fingerprint", "described", "last written"]) if (data.facts[key]) rows.push([key, data.facts[key]]);
  rows.push(["version of the numbers", String(data.numbers)]);
  fillTable(at("facts"), { columns: ["what", "value"], rows });
  const envs = Object.keys(data.envs).length;
  at("lead").textContent = `${envs} environment${envs === 1 ? "" : "s"}, ${data.agents.length} agent` +
    `${data.agents.length === 1 ? "" : "s"}` + (study.seeds ? `, ${study.seeds} seeds` : "");
  for (const note of data.notes.length ? data.notes : ["None."]) make("li", { textContent: note }, at("notes"));
}
function start() {
  for (const env of Object.keys(data.envs)) make("option", { value: env, textContent: env }, at("env"));
  const there = new Set(Object.values(data.envs).flatMap((env) => Object.values(env.curves).flatMap(Object.keys)));
  for (const [kind, name] of Object.entries(data.comparators)) {
    if (there.has(kind)) make("option", { value: kind, textContent: name }, at("comparator"));
  }
  const values = (p) => new Set(p === "T" ? data.summary.rows.map((row) => row[data.summary.columns.indexOf("T")])
    : Object.values(data.envs).map((env) => env.parameters[p]).filter(isThere));
  const varied = data.parameters.filter((p) => values(p).size > 1 && [...values(p)].every(isNumber));
  for (const name of varied) make("option", { value: name, textContent: name }, at("against"));
  // What has nothing to show is not there.
  const hide = (part) => document.querySelectorAll(`#${part}, nav a[href="#${part}"]`).forEach((element) => { element.hidden = true; });
  if (!varied.length) hide("parameter");
  if (!data.behaviour.length && !Object.keys(data.own).length) hide("work");
  at("comparator").parentElement.hidden = !at("comparator").options.length;
  for (const agent of data.agents) {
    const label = make("label", {}, at("agents"));
    make("input", { type: "checkbox", value: agent, checked: true }, label);
    label.append(agent);
  }
  at("comparator").addEventListener("change", () => { choseComparator = true; });
  at("controls").addEventListener("change", drawAll);
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("against").addEventListener("change", drawAll);
  for (const seed of new Set(data.behaviour.map((row) => row.seed))) make("option", { value: seed, textContent: `seed ${seed}` }, at("run"));
  at("run").addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => document.querySelectorAll(".figure, .picture").forEach((figure) => {
    if (figure.data) Plotly.Plots.resize(figure);
  }));
  fillSummary(); fillTable(at("environments"), data.environments); fillTable(at("players"), data.players); fillFacts(); drawAll();
}
start();
