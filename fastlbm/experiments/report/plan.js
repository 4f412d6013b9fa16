"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
// The page sends nothing anywhere: no button offers it, whatever Plotly's version calls it, and no address is known.
const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud"] };
const layout = (ytitle) => ({
  xaxis: { title: { text: "step" }, automargin: true }, yaxis: { title: { text: ytitle }, automargin: true },
  margin: { l: 10, r: 10, t: 30, b: 10 }, hovermode: "x unified",
  legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom" },
});
// Rows of coordinates, with the first two turned: where A0 is a multiple of I a plan turns with theta.
function turned(rows, degrees) {
  const a = (degrees * Math.PI) / 180, [x, y, ...rest] = rows;
  if (rows.length < 2 || !degrees) return rows;
  return [x.map((v, k) => Math.cos(a) * v - Math.sin(a) * y[k]),
    x.map((v, k) => Math.sin(a) * v + Math.cos(a) * y[k]), ...rest];
}
function draw() {
  const m = data.memories[Number(at("m").value)], gamma = data.gammas[Number(at("gamma").value)];
  const angle = Number(at("angle").value), plan = data.plans[`${m},${gamma}`];
  at("m-shown").value = m; at("gamma-shown").value = gamma; at("angle-shown").value = angle;
  const theta = turned(data.theta.map((x) => [x]), angle).map(([x]) => x.toFixed(2));
  if (!plan) {
    at("words").textContent = `There is no model with m=${m} and gamma=${gamma} for this A0.`;
    for (const id of ["actions", "memory", "rewards"]) Plotly.react(id, [], layout(""), CONFIG);
    return;
  }
  at("words").textContent = `m = ${m}, gamma = ${gamma}, theta = (${theta.join(", ")}): the cycle has period ${plan.period} and pays ` +
    `${plan.average.toPrecision(4)} a step in the long run.`;
  const steps = plan.rewards.map((_, k) => k + 1), rows = turned(plan.actions, angle);
  const heat = layout("coordinate");
  heat.yaxis.autorange = "reversed"; heat.yaxis.dtick = rows.length <= 12 ? 1 : undefined; heat.hovermode = "closest";
  Plotly.react("actions", [{ type: "heatmap", x: steps, y: rows.map((_, k) => k + 1), z: rows, zmin: -1, zmax: 1,
    colorscale: "Cividis", colorbar: { thickness: 10 } }], heat, CONFIG);
  Plotly.react("memory", plan.memory.map((y, k) => ({ x: steps, y, mode: "lines+markers", name: `eigenvalue ${k + 1}` })),
    layout("eigenvalue"), CONFIG);
  Plotly.react("rewards", [
    { type: "bar", x: steps, y: plan.rewards, name: "the cycle", marker: { color: "#0072B2" } },
    { x: steps, y: plan.same, mode: "lines", name: "theta's direction at every step", line: { color: "#D55E00" } },
  ], layout("expected reward"), CONFIG);
}
at("m").max = data.memories.length - 1; at("m").value = data.start[0];
at("gamma").max = data.gammas.length - 1; at("gamma").value = data.start[1];
at("angle-part").hidden = !data.turns;
at("controls").addEventListener("input", draw);
draw();
