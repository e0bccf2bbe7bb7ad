"use strict";
// Sorting, filtering, choosing another baseline, the chooser and the selection of results. All else works without it.

const { resolution, quantiles, students, margin, share: memoryShare, most_rounds: mostRounds } = JSON.parse(document.getElementById("constants").textContent);
const NONE = "–";
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Figures in words, the same way as loaders/_words.py.
const digits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};
const duration = (seconds) => {
  const [factor, unit] = [[1, "s"], [1e3, "ms"]].find(([each]) => Math.abs(seconds) * each >= 1) ?? [1e6, "µs"];
  return `${digits(seconds * factor)} ${unit}`;
};
const amount = (bytes) => {
  const mebibytes = bytes / 2 ** 20;
  return `${mebibytes.toFixed(Math.abs(mebibytes) >= 99.95 ? 0 : 1)} MiB`;
};
// A judged ratio, worded as in loaders/_words.py: the value, and the line below it.
const times = (judged, less, more, little) => {
  if (!judged) return [NONE, ""];
  const { verdict, value, low, high, isNear, isSmall, rounds } = judged;
  const between = `${digits(low)} to ${digits(high)})`;
  if (low === null && isNear) return ["below resolution", "single sample)"];
  if (low === null) return [`${digits(value < 1 ? 1 / value : value)}× ${value < 1 ? less : more}`, "single sample)"];
  if (isNear) return ["below resolution", between];
  if (verdict === "no difference") return [verdict, between];
  if (verdict === "undecided") return [verdict, `${between}: ${rounds ?? `more than ${mostRounds}`} rounds would decide`];
  const bySmall = isSmall ? `, ${little}` : "";
  return verdict === "less"
    ? [`${digits(1 / value)}× ${less}`, `${digits(1 / high)} to ${digits(1 / low)})${bySmall}`]
    : [`${digits(value)}× ${more}`, between + bySmall];
};

// The judge, as in loaders/_judge.py: moderated variances, paired by round, Satterthwaite's degrees of freedom.
const student = (degrees, confidence) => {
  const table = students[confidence];
  const place = Math.min(1, 1 / degrees) * (table.length - 1);
  const below = Math.min(Math.floor(place), table.length - 2);
  return table[below] + (table[below + 1] - table[below]) * (place - below);
};
const intervalOf = ({ value, error, degrees }, confidence) => {
  const half = student(degrees, confidence) * error;
  return [Math.exp(value - half), Math.exp(value + half)];
};
const judgedAs = (difference, within) => {
  const [low, high] = intervalOf(difference, "0.95");
  if (high < 1) return "less";
  if (low > 1) return "more";
  const [near, far] = intervalOf(difference, "0.9");
  return 1 / within < near && far < within ? "no difference" : "undecided";
};
const roundsOf = (difference, within) => {
  const decides = (rounds) => {
    const grown = difference.rounds > 1 ? (rounds - 1) / (difference.rounds - 1) : 1;
    const error = difference.error * Math.sqrt(difference.rounds / rounds);
    return judgedAs({ value: difference.value, error, degrees: difference.degrees * grown }, within) !== "undecided";
  };
  if (!decides(mostRounds)) return null;
  let [low, high] = [difference.rounds, mostRounds];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    [low, high] = decides(middle) ? [low, middle] : [middle, high];
  }
  return high;
};
const judge = (one, other, spreads, within, floor) => {
  const common = Object.keys(one).filter((round) => Math.max(one[round], floor) > 0 && Math.max(other[round], floor) > 0);
  if (!common.length) return null;
  const logs = common.map((round) => Math.log(Math.max(one[round], floor) / Math.max(other[round], floor)));
  const value = logs.reduce((sum, each) => sum + each, 0) / logs.length;
  if (!spreads.every(Boolean)) return { verdict: "undecided", value: Math.exp(value), low: null, high: null };
  const [[first, firstDegrees, most], [second, secondDegrees]] = spreads;
  const total = first + second;
  const degrees = Math.min(total ** 2 / (first ** 2 / firstDegrees + second ** 2 / secondDegrees), most);
  const difference = { value, error: Math.sqrt(total / logs.length), degrees, rounds: logs.length };
  const [low, high] = intervalOf(difference, "0.95");
  const verdict = judgedAs(difference, within);
  const rounds = verdict === "undecided" ? roundsOf(difference, within) : null;
  const isSmall = verdict !== "no difference" && 1 / within < low && high < within;
  return { verdict, value: Math.exp(value), low, high, isSmall, rounds };
};
// A difference that the instrument cannot resolve has no direction.
const unresolved = (judged) =>
  judged && (judged.verdict === "less" || judged.verdict === "more") ? { ...judged, isNear: true } : judged;
const average = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;

// The geometric mean with its Student's t interval over logarithms, as in loaders/_stats.py.
const geometricMean = (values) => {
  const logs = values.map(Math.log);
  const mean = average(logs);
  if (logs.length === 1) return [Math.exp(mean), null, null];
  const variance = logs.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (logs.length - 1);
  const half = quantiles[Math.min(logs.length, quantiles.length + 1) - 2] * Math.sqrt(variance / logs.length);
  return [Math.exp(mean), Math.exp(mean - half), Math.exp(mean + half)];
};
const bracketed = ([value, low, high], words) => {
  if (low === null) return [words(value), "single sample)"];
  const said = [value, low, high].map(words);
  const units = new Set(said.map((each) => each.split(" ").at(-1)));
  const [first, last] = said.slice(1).map((each) => (units.size === 1 ? each.split(" ")[0] : each));
  return [said[0], `${first} to ${last})`];
};
// An instrument's resolution at a value, interpolated between known truths as in loaders/_resolution.py.
const resolves = (points, value) => {
  const next = points.findIndex(([truth]) => truth > value);
  if (next === 0) return points[0][1];
  const [truth, limit] = points.at(next === -1 ? -1 : next - 1);
  if (next === -1) return truth ? (limit * value) / truth : limit;
  const [further, there] = points[next];
  return limit + ((there - limit) * (value - truth)) / (further - truth);
};
// Sorting: a button in each heading; rows without a figure stay last.
const keyOf = (cell) =>
  cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.classList.contains("ratio") ? NaN : cell.textContent;
const compare = (one, other) => (typeof one === "number" ? one - other : one.localeCompare(other));
const isAbsent = (key) => Number.isNaN(key) || key === "" || key === NONE;
const sort = (heading) => {
  const table = heading.closest("table");
  const column = heading.cellIndex;
  const upward = heading.getAttribute("aria-sort") !== "ascending";
  all("thead th", table).forEach((each) => each.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", upward ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[column]), row]);
  const numeric = rows.some(([key]) => typeof key === "number");
  const absent = (key) => isAbsent(key) || (numeric && typeof key !== "number");
  rows.sort(([one], [other]) => absent(one) - absent(other) || (absent(one) ? 0 : compare(one, other) * (upward ? 1 : -1)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
};
for (const heading of all("table.sortable th[data-sorts]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  button.addEventListener("click", () => sort(heading));
  heading.append(button);
}

// Filter and baseline: they apply to all tables of a comparison.
const show = (cell, [value, interval], sortsBy) => {
  const small = document.createElement("span");
  small.className = "interval";
  small.textContent = interval;
  cell.replaceChildren(value, small);
  if (sortsBy !== undefined) cell.dataset.value = sortsBy;
  else delete cell.dataset.value;
};
const heldAgainst = (row, base, limits) => {
  const of = (each, name) => JSON.parse(each.dataset[name]);
  const [times, peaks] = ["times", "peaks"].map((name) => [row, base].map((each) => of(each, name)));
  const spreads = (name) => [row, base].map((each) => of(each, "spread")[name]);
  let time = judge(...times, spreads("time"), margin, 0);
  const [fast, slow] = times.map((each) => average(Object.values(each)));
  if (limits.time && Math.abs(fast - slow) < resolves(limits.time, Math.max(fast, slow))) time = unresolved(time);
  const points = [row, base].some((each) => each.dataset.tree) ? limits.tree : limits.memory;
  const [own, theirs] = peaks.map((each) => average(Object.values(each)));
  const limit = Math.max(resolution, points ? resolves(points, Math.max(own, theirs)) : 0);
  const within = Math.max(memoryShare, 1 + limit / Math.max(resolution, own, theirs));
  let memory = judge(...peaks, spreads("memory"), within, resolution);
  const least = Math.max(resolution, points ? resolves(points, 0) : 0);
  if (Math.abs(own - theirs) < limit) memory = unresolved(memory);
  else if (Math.min(...peaks.flatMap(Object.values)) < least) memory = null; // the multiple would be noise
  return [time, memory];
};
const rebase = (section, baseline) => {
  const rows = all("tr[data-strategy]", section);
  const resolutions = JSON.parse(section.dataset.resolutions);
  const group = (row) => row.closest("table").dataset.group;
  for (const row of rows) {
    const base = rows.find((each) => each.dataset.strategy === baseline && group(each) === group(row));
    const cells = [row.querySelector(".ratio"), row.querySelector(".peak-ratio")];
    if (base === row) {
      for (const cell of cells) show(cell, ["baseline", ""], 1);
      continue;
    }
    const trials = base ? Math.min(row.dataset.samples, base.dataset.samples) : 0;
    const [time, memory] = base ? heldAgainst(row, base, resolutions[trials] ?? {}) : [null, null];
    show(cells[0], times(time, "faster", "slower", "by less than 10 %"), time?.value);
    show(cells[1], times(memory, "leaner", "fatter", "by less than 5 % or 1 MiB"), memory?.value);
  }
};
// The number of epochs in a total: the conversion, the first epoch, then steady ones for the rest.
const totals = (section, epochs) => {
  for (const row of all("tr[data-strategy]", section)) {
    const cell = row.querySelector(".total");
    const parts = Object.values(JSON.parse(row.dataset.parts));
    if (!cell || !parts.length) continue;
    const total = geometricMean(parts.map(([convert, first, steady]) => convert + first + (epochs - 1) * steady));
    show(cell, bracketed(total, duration), total[0]);
  }
  for (const heading of all("th.epochs", section)) {
    const words = heading.querySelector("button") ?? heading;
    words.textContent = `time of ${epochs} ${epochs === 1 ? "epoch" : "epochs"}`;
  }
};
for (const section of all("section.comparison")) {
  const controls = section.querySelector(".controls");
  const { filter, baseline, epochs } = controls.elements;
  const rows = all("tr[data-words]", section);
  controls.hidden = false;
  controls.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.dataset.words.toLowerCase().includes(wanted);
    for (const tier of all(".tier", section)) tier.hidden = !all("tr[data-words]", tier).some((row) => !row.hidden);
    const shown = rows.filter((row) => !row.hidden).length;
    controls.querySelector(".shown").textContent = wanted ? `${shown} of ${rows.length} rows shown` : "";
  });
  baseline.addEventListener("change", () => rebase(section, baseline.value));
  epochs.addEventListener("input", () => {
    if (epochs.checkValidity() && epochs.value) totals(section, Number(epochs.value));
  });
}

// The chooser looks up what loaders/_advise/choose.py decided for every setting that it offers.
const meanOf = (values) => {
  if (!values.length) return null;
  const mean = average(values);
  if (values.length === 1) return [mean, null, null];
  const variance = values.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (values.length - 1);
  const half = quantiles[Math.min(values.length, quantiles.length + 1) - 2] * Math.sqrt(variance / values.length);
  return [mean, Math.max(0, mean - half), mean + half]; // a wait cannot be negative
};
const estimated = (figure, words) => (figure ? bracketed(figure, words).join(" (") : NONE);
const listed = (names) => (names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", "));
const BOTTLENECK = { y: true, n: false, "?": null };
// `asked` holds the index of each setting among its values.
const decisionOf = ({ values, kinds }, choice, asked) => {
  const order = ["step", "batch", "samples", "epochs", "memory"];
  const place = order.reduce((sum, name) => sum * values[name].length + asked[name], 0);
  const letters = choice.table[choice.answers[place]];
  const found = choice.strategies.map((each, index) => ({
    ...each,
    kind: kinds[letters[index].toLowerCase()],
    isRival: letters[index] !== letters[index].toLowerCase(),
  }));
  return {
    found,
    recommended: found.find((each) => each.kind === "recommended")?.name ?? null,
    rivals: found.filter((each) => each.isRival).map((each) => each.name),
    bottleneck: BOTTLENECK[letters.at(-1)],
  };
};
const RANK = ["recommended", "as good", "slower", "undecided", "does not fit", "memory unknown"];
const waitOf = ({ load, wait }, step, batch) =>
  meanOf(load.map((each, index) => (step ? Math.max(each * batch - step, wait[index] * batch) : each * batch)));
const verdictOf = (one, isDecided) =>
  ({
    recommended: isDecided ? "recommended" : "recommended, undecided",
    "as good": "as good: at most 10 % slower than the fastest",
    slower: one.isRival ? "undecided: it may be the fastest" : "slower",
    undecided: "undecided: it may be the fastest",
    "memory unknown": `memory unknown: ${one.why}`,
    historic: "historic: kept because existing code uses it",
    ceiling: "ceiling: shows what the machine can do; not a loader to choose",
    "other output": `other output: ${one.tier}`,
    failed: one.problem.startsWith("failed") ? one.problem : `failed: ${one.problem}`,
    "not measured": one.problem || "not measured",
  })[one.kind] ?? one.kind;
const reasonsOf = ({ found, recommended, rivals, bottleneck }, { memory, step, batch, samples, place }) => {
  const fitting = found.filter((each) => RANK.indexOf(each.kind) >= 0 && RANK.indexOf(each.kind) < 4);
  const lacking = found.filter((each) => each.kind === "not measured").map((each) => each.name);
  const unknown = found.filter((each) => each.kind === "memory unknown").map((each) => each.name);
  const needs = (one) => one.memory[place.batch][place.samples][2];
  if (!recommended) {
    const known = found.filter((each) => each.kind === "does not fit").sort((one, other) => needs(one) - needs(other));
    const least = known.length ? ` ${known[0].name} would fit into ${amount(needs(known[0]))}.` : "";
    const rest = unknown.length ? ` The memory of ${listed(unknown)} is unknown: measure with more samples.` : "";
    return `No strategy is certain to fit into ${amount(memory)} with ${samples} samples.${least}${rest}`;
  }
  const winner = found.find((each) => each.name === recommended);
  const wait = estimated(waitOf(winner, step, batch), duration);
  const first = !step
    ? `Without a training step, all time is loading: a batch of ${batch} takes ${wait}.`
    : bottleneck === false
      ? `Loading is not the bottleneck: with ${recommended}, a step of ${duration(step)} waits ${wait}, less than 10 % of it.`
      : bottleneck
        ? `Loading is the bottleneck: even with ${recommended}, a step of ${duration(step)} waits ${wait}.`
        : `Whether loading is the bottleneck is undecided: with ${recommended}, a step of ${duration(step)} waits ${wait}.`;
  const close = fitting.filter((each) => each.kind === "recommended" || each.kind === "as good").length;
  const lead = close > 1 ? `the simplest of ${close} that are at most 10 % slower than the fastest of` : "the fastest of";
  const why =
    fitting.length > 1
      ? `${lead} the ${fitting.length} strategies that are certain to fit`
      : "the only strategy that is certain to fit";
  const doubt = rivals.length ? ` Undecided: ${listed(rivals)} may be faster.` : "";
  const rest = lacking.length ? ` This covers ${found.length - lacking.length} of ${found.length} strategies; not measured: ${listed(lacking)}.` : "";
  return (
    `${first} Use ${recommended}: ${why}. ` +
    `It needs at most ${amount(needs(winner))} for ${samples} samples.${doubt}${rest}`
  );
};
const advise = (section) => {
  const data = JSON.parse(section.querySelector(".choices").textContent);
  const form = section.querySelector("form");
  const snippet = section.querySelector(".snippet");
  const table = section.querySelector("table.fitting tbody");
  const names = Object.keys(data.values);
  const place = Object.fromEntries(names.map((name) => [name, Number(form.elements[name].value)]));
  const asked = Object.fromEntries(names.map((name) => [name, data.values[name][place[name]]]));
  const choice = data.choices[form.elements.choice.value];
  const decision = decisionOf(data, choice, place);
  section.querySelector(".source").textContent = choice.from;
  section.querySelector(".advice").textContent = reasonsOf(decision, { ...asked, place });
  const rank = (kind) => (RANK.includes(kind) ? RANK.indexOf(kind) : RANK.length);
  const lines = decision.found
    .map((each) => ({ ...each, waits: waitOf(each, asked.step, asked.batch) }))
    .sort((one, other) => rank(one.kind) - rank(other.kind) || (one.waits?.[0] ?? 0) - (other.waits?.[0] ?? 0));
  table.replaceChildren();
  for (const one of lines) {
    const line = table.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = one.name;
    line.append(name);
    const isShown = rank(one.kind) < RANK.length;
    for (const words of [
      verdictOf(one, !decision.rivals.length),
      isShown ? estimated(one.memory[place.batch][place.samples], amount) : NONE,
      isShown ? estimated(one.waits, duration) : NONE,
    ])
      line.insertCell().textContent = words;
    line.className = one.kind === "recommended" ? "picked" : "";
  }
  const { question } = form.elements.choice.selectedOptions[0].dataset;
  const comparison = section.closest("section.set")?.querySelector(`section.comparison[id$="-${question}"]`);
  const code = comparison?.querySelector(`tr[data-strategy="${decision.recommended}"] details pre code`);
  snippet.hidden = !code;
  if (code) {
    snippet.querySelector("summary").textContent = `Code of ${decision.recommended}`;
    snippet.querySelector("pre code").textContent = code.textContent;
  }
};
for (const section of all("section.chooser")) {
  const form = section.querySelector("form");
  section.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => advise(section));
  const button = section.querySelector(".snippet button");
  button.addEventListener("click", async () => {
    const code = section.querySelector(".snippet pre code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // if the page may not write to the clipboard, the reader can
      button.textContent = "Selected: copy it with your keyboard";
    }
  });
  advise(section);
}

// Selection of results: one group of selects for everything the page holds.
const pick = document.getElementById("pick");
if (pick) {
  const sets = all("section.set");
  const selects = all("select", pick);
  for (const select of selects) {
    const values = [...new Set(sets.map((each) => each.dataset[select.name]))];
    select.closest("label").hidden = values.length < 2;
    select.append(...values.map((each) => new Option(each || "unknown", each)));
    select.value = sets[0].dataset[select.name];
  }
  const update = () => {
    const fitting = sets.filter((each) => selects.every((select) => each.dataset[select.name] === select.value));
    for (const each of sets) each.hidden = !fitting.includes(each);
    const titles = sets.map((each) => each.querySelector("h2").textContent);
    document.getElementById("picked").textContent = fitting.length
      ? `Showing ${fitting.length} of ${sets.length} results.`
      : `No such result. Available: ${titles.join("; ")}.`;
  };
  const reveal = () => {
    // Following a link into a hidden set shows that set.
    const set = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("section.set");
    if (!set?.hidden) return;
    for (const select of selects) select.value = set.dataset[select.name];
    update();
    document.getElementById(decodeURIComponent(location.hash.slice(1))).scrollIntoView();
  };
  pick.hidden = false;
  pick.addEventListener("input", update);
  addEventListener("hashchange", reveal);
  update();
  reveal();
}
