"use strict";
// Sorting, filtering, choosing another baseline, the chooser and the selection of results. All else works without it.

const { resolution, quantiles, students, margin, share: memoryShare, most_rounds: mostRounds, worth, closes_within: closesWithin } = JSON.parse(document.getElementById("constants").textContent);
const NONE = "–";
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Figures in words, the same way as loaders/_words.py.
const digits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};
const duration = (seconds) => {
  const [factor, unit] = [[1, "s"], [1e3, "ms"]].find(([each]) => Math.abs(seconds) * each >= 0.9995) ?? [1e6, "µs"];
  return `${digits(seconds * factor)} ${unit}`;
};
const amount = (bytes) => {
  const mebibytes = bytes / 2 ** 20;
  return `${mebibytes.toFixed(Math.abs(mebibytes) >= 99.95 ? 0 : 1)} MiB`;
};
const enough = (bytes) => {
  const digits = Math.abs(bytes / 2 ** 20) >= 99.95 ? 1 : 10;
  return amount((Math.ceil((bytes / 2 ** 20) * digits - 1e-6) / digits) * 2 ** 20);
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
  judged && (["less", "more"].includes(judged.verdict) || judged.low === null) ? { ...judged, isNear: true } : judged;
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
const sort = (heading, upward) => {
  const table = heading.closest("table");
  const column = heading.cellIndex;
  all("thead th", table).forEach((each) => each.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", upward ? "ascending" : "descending");
  table.classList.toggle("ranked", upward && !["strategy", "status", "samples"].includes(heading.dataset.key));
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[column]), row]);
  const numeric = rows.some(([key]) => typeof key === "number");
  const absent = (key) => isAbsent(key) || (numeric && typeof key !== "number");
  rows.sort(([one], [other]) => absent(one) - absent(other) || (absent(one) ? 0 : compare(one, other) * (upward ? 1 : -1)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
};
const ranked = (section, key) => {
  const name = key.replace(/^-/, "");
  for (const table of all("table.ranking", section)) {
    const heading = all("thead th", table).find((each) => each.dataset.key === name);
    if (heading) sort(heading, !key.startsWith("-"));
  }
};

// Filter and baseline: they apply to all tables of a comparison.
const show = (cell, [value, interval], sortsBy) => {
  if (!cell) return; // results that were replaced have fewer figures
  const small = document.createElement("small");
  small.textContent = interval && `(${interval}`;
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
  const within = Math.max(memoryShare, 1 + limit / Math.max(limit, own, theirs));
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
const FALLING = ", largest first";
// The number of epochs in a total: the conversion, the first epoch, then steady ones for the rest.
const totals = (section, epochs) => {
  const words = `time of ${epochs} ${epochs === 1 ? "epoch" : "epochs"}`;
  for (const row of all("tr[data-strategy]", section)) {
    const cell = row.querySelector(".total");
    const parts = Object.values(JSON.parse(row.dataset.parts ?? "{}"));
    if (!cell || !parts.length) continue;
    const totals = parts.map(([convert, first, steady, spread]) => {
      const found = convert + first + (epochs - 1) * steady;
      return found * Math.exp((spread * first) / found);
    });
    const total = geometricMean(totals);
    show(cell, bracketed(total, duration), total[0]);
    if (cell.dataset.label) cell.dataset.label = words;
  }
  for (const heading of all("th.epochs", section)) (heading.querySelector("button") ?? heading).textContent = words;
  const order = section.querySelector(".controls").elements.sort;
  for (const each of order.options)
    if (each.value.endsWith("total")) each.textContent = words + (each.value.startsWith("-") ? FALLING : "");
};
// Leaving strategies out: the ratio to the fastest becomes that to the fastest that is left.
const toFastest = (section, out) => {
  const resolutions = JSON.parse(section.dataset.resolutions);
  for (const box of all(".case", section)) {
    const rows = all("tr[data-strategy]:not(.untimed)", box);
    const left = rows.filter((each) => !out.includes(each.dataset.strategy));
    // By the fitted effects, as in loaders/_judge.py: who was measured in the fast rounds alone has a short mean.
    const first = (among) =>
      among
        .filter((each) => each.dataset.effect && !each.dataset.apart)
        .sort((one, other) => one.dataset.effect - other.dataset.effect)[0];
    const fastest = first(left);
    for (const row of rows) {
      const cell = row.querySelector(".to-fastest");
      if (!cell) continue;
      row.original ??= [[...cell.childNodes], cell.dataset.value];
      // While the fastest of all is left, its corrected ratios hold, whatever else is left out.
      if (!out.length || (fastest && fastest === first(rows))) {
        cell.replaceChildren(...row.original[0]);
        if (row.original[1] !== undefined) cell.dataset.value = row.original[1];
      } else if (!fastest) show(cell, [NONE, ""]);
      else if (row === fastest) show(cell, ["the fastest", ""], 1);
      else {
        const limits = resolutions[Math.min(row.dataset.samples, fastest.dataset.samples)] ?? {};
        const [time] = heldAgainst(row, fastest, limits);
        show(cell, times(time, "faster", "slower", "by less than 10 %"), time?.value);
      }
    }
  }
};
// What the filter looks at: a row's strategy and what is said of it, without its code and command.
const wordsOf = (row) => {
  row.words ??= [...row.cells[0].childNodes].map((each) => (each.nodeName === "DETAILS" ? "" : each.textContent)).join(" ").toLowerCase();
  return row.words;
};
const outOf = (controls) => controls.elements.out.value.split(",").filter(Boolean);
const update = (section) => {
  const controls = section.querySelector(".controls");
  const { filter, baseline, epochs, out, sort: order, all: every, case: box } = controls.elements;
  const left = outOf(controls);
  const wanted = filter.value.trim().toLowerCase();
  for (const each of all(".case", section)) each.hidden = Boolean(box) && box.value !== "all" && each.dataset.case !== box.value;
  for (const each of all("table.ranking", section)) {
    each.classList.toggle("brief", !every?.checked);
    each.classList.toggle("filtered", Boolean(wanted));
  }
  const rows = all("table.ranking tbody tr", section);
  for (const row of rows) row.hidden = !wordsOf(row).includes(wanted) || left.includes(row.dataset.strategy);
  for (const tier of all(".tier", section)) tier.hidden = !all("table.ranking tbody tr", tier).some((row) => !row.hidden);
  const fresh = ["baseline", "epochs", "out", "sort"].filter((name) => controls.elements[name].value !== section.dataset[name]);
  if (fresh.includes("baseline")) rebase(section, baseline.value);
  if (fresh.includes("epochs") && epochs.checkValidity() && epochs.value) totals(section, Number(epochs.value));
  if (fresh.includes("out")) toFastest(section, left);
  if (fresh.length && order.value) ranked(section, order.value); // what it is ranked by may have changed
  for (const name of fresh) section.dataset[name] = controls.elements[name].value;
  section.querySelector(".recounted").hidden = !left.length;
  section.querySelector(".redrawn").hidden = !left.length && baseline.value === usual(baseline);
  section.querySelector(".usual").textContent = usual(baseline);
  const shown = controls.querySelector(".shown");
  const within = rows.filter((row) => !row.closest(".case").hidden);
  const counted = wanted ? [`${within.filter((row) => !row.hidden).length} of ${within.length} rows shown`] : [];
  shown.replaceChildren(...counted);
  if (!left.length) return;
  const back = deed("bring back", () => {
    out.value = "";
    changed(section);
    filter.focus();
  });
  shown.append(`${wanted ? "; " : ""}left out: ${left.join(", ")} `, back);
};
const deed = (words, act) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words;
  button.addEventListener("click", act);
  return button;
};
const control = (section) => {
  const controls = section.querySelector(".controls");
  const { baseline, out, sort: order } = controls.elements;
  const headings = all("table.ranking thead th[data-sorts]", section);
  for (const key of new Set(headings.map((each) => each.dataset.key))) {
    const words = headings.find((each) => each.dataset.key === key).textContent;
    const falls = key === "strategy" || key === "status" ? [] : [["-", FALLING]];
    for (const [sign, said] of [["", ""], ...falls]) order.append(new Option(words + said, sign + key, !sign && key === "time", !sign && key === "time"));
  }
  controls.hidden = false;
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", () => changed(section));
  for (const name of ["baseline", "epochs", "out", "sort"]) section.dataset[name] = usual(controls.elements[name]);
  for (const row of all("tr[data-strategy]", section)) {
    const name = row.dataset.strategy;
    const deeds = document.createElement("p");
    deeds.className = "deeds";
    const against = deed("Compare with it", () => {
      baseline.value = name;
      changed(section);
      against.focus(); // rows that are sorted anew lose it
    });
    const leave = deed("Leave it out", () => {
      out.value = [...outOf(controls), name].join(",");
      changed(section);
      controls.querySelector(".shown > button").focus();
    });
    const link = document.createElement("a");
    link.href = `#${row.id}`;
    link.textContent = "Link to it";
    deeds.append(against, " ", leave, " ", link);
    row.querySelector("summary").after(deeds);
  }
};
// On a phone a chart fits the screen, and can be enlarged.
const enlargeable = (within) => {
  for (const figure of all(".charts figure", within)) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.textContent = "Enlarge";
    button.addEventListener("click", () => {
      button.textContent = figure.classList.toggle("enlarged") ? "Fit to the screen" : "Enlarge";
    });
    figure.append(button);
  }
};
// To a browser with scripts, what is in <noscript> is text: a view's content is parsed when it is first shown.
const unwrap = (view) => {
  const raw = view.querySelector(":scope > noscript");
  if (!raw) return;
  const made = document.createElement("template");
  made.innerHTML = raw.textContent;
  raw.replaceWith(made.content);
};
// Each function stands once on the page; rows and the chooser put together what a strategy is made of.
const codeOf = (question, strategy) => {
  const codes = document.getElementById("code");
  if (codes) unwrap(codes);
  const parts = all(`#${CSS.escape(`code-${question}-${strategy}`)} a`).map((each) => document.getElementById(each.hash.slice(1)));
  return parts.map((each) => each.textContent).join("\n\n\n");
};
// A view is prepared when it is first shown: buttons in headings, names beside the figures of cards.
const prepared = new WeakSet();
const prepare = (view) => {
  if (prepared.has(view)) return;
  prepared.add(view);
  unwrap(view);
  for (const table of all("table.cards", view)) {
    const names = all("thead th", table).map((each) => each.textContent);
    for (const row of all("tbody tr", table)) [...row.cells].forEach((cell, index) => (cell.dataset.label ??= names[index] ?? ""));
    // As cards it is still a table to a screen reader, whatever the browser makes of their layout.
    const roles = { "thead, tbody": "rowgroup", tr: "row", "thead th": "columnheader", "tbody th": "rowheader", td: "cell" };
    table.role = "table";
    for (const [selector, role] of Object.entries(roles)) for (const each of all(selector, table)) each.role = role;
  }
  for (const heading of all("table.sortable th[data-sorts]", view)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => {
      const upward = heading.getAttribute("aria-sort") !== "ascending";
      const select = heading.closest("section.comparison")?.querySelector(".controls").elements.sort;
      const key = heading.closest("table.ranking") && `${upward ? "" : "-"}${heading.dataset.key}`;
      if (!key || ![...select.options].some((each) => each.value === key)) return sort(heading, upward);
      select.value = key;
      select.dispatchEvent(new Event("input", { bubbles: true }));
    });
    heading.append(button);
    if (heading.dataset.key === "time") heading.setAttribute("aria-sort", "ascending"); // as the page is made
  }
  for (const link of all("a.code", view)) {
    const put = () => {
      const [box, code] = ["pre", "code"].map((each) => document.createElement(each));
      code.textContent = codeOf(view.dataset.view, link.closest("tr").dataset.strategy);
      box.append(code);
      link.parentElement.replaceWith(box);
    };
    link.closest("details").addEventListener("toggle", put, { once: true });
  }
  enlargeable(view);
  if (view.matches("section.comparison")) control(view);
};

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
    measured: choice.measured,
  };
};
const RANK = ["recommended", "as good", "slower", "undecided", "not worth installing", "does not fit", "memory unknown", "time unknown"];
const waitOf = ({ load, closed, wait, once }, { step, batch, samples, epochs, place }) =>
  meanOf(
    load.map((each, index) => {
      const behind = step ? Math.max(each * batch - step, wait[index] * batch) : each * batch;
      return behind + Math.min(closed[index], closesWithin / samples) * batch + (once[place.samples][index] * batch) / (epochs * samples);
    }),
  );
const verdictOf = (one, isDecided) =>
  ({
    recommended: isDecided ? "recommended" : "recommended, undecided",
    "as good": "as good: at most 10 % slower than the fastest",
    slower: "slower",
    undecided: "undecided: it may be the fastest",
    "not worth installing": `not worth installing ${one.needs}: not shown to be ${worth} times as fast as what needs no more`,
    "memory unknown": `memory unknown: ${one.why}`,
    "time unknown": `time unknown: its files were read from memory, which held those of ${Math.round(one.held)} samples and no more`,
    historic: "historic: kept because existing code uses it",
    ceiling: "ceiling: shows what the machine can do; not a loader to choose",
    "other output": `other output: ${one.tier}`,
    failed: one.problem.startsWith("failed") ? one.problem : `failed: ${one.problem}`,
    "not measured": one.problem || "not measured",
  })[one.kind] ?? one.kind;
const reasonsOf = ({ found, recommended, rivals, bottleneck, measured }, asked) => {
  const { step, batch, samples, place, budget } = asked;
  const fitting = found.filter((each) => RANK.indexOf(each.kind) >= 0 && RANK.indexOf(each.kind) < 4);
  const lacking = found.filter((each) => each.kind === "not measured" && !each.load.length).map((each) => each.name);
  const unknown = found.filter((each) => each.kind === "memory unknown").map((each) => each.name);
  const large = found.filter((each) => each.kind === "time unknown").map((each) => each.name);
  const beyond = large.length
    ? `Left out, as their files were timed in memory, which does not hold those of ${samples} samples: ${listed(large)}.`
    : "";
  const needs = (one) => one.memory[place.batch][place.samples][2];
  if (!recommended) {
    const known = found.filter((each) => each.kind === "does not fit").sort((one, other) => needs(one) - needs(other));
    const [before, other] = beyond ? [`${beyond} `, "other "] : ["", ""];
    if (!known.length && unknown.length) {
      const why = found.find((each) => each.name === unknown[0]).why;
      return [
        `${before}How much memory ${samples} samples need is unknown for every ${other}strategy that could be used: ${listed(unknown)} (${unknown[0]}: ${why}).`,
      ];
    }
    const failed = found.filter((each) => each.kind === "failed").map((each) => each.name);
    const without = failed.length ? ` without a failure: ${listed(failed)} went wrong` : "";
    if (!known.length) return [beyond || `No strategy that could be used has been measured${without}.`];
    const rest = unknown.length ? ` The memory of ${listed(unknown)} is unknown: measure with more samples.` : "";
    return [
      `${before}No ${other}strategy is certain to fit into ${budget} with ${samples} samples. ${known[0].name} would fit into ${enough(needs(known[0]))}.${rest}`,
    ];
  }
  const winner = found.find((each) => each.name === recommended);
  const wait = estimated(waitOf(winner, asked), duration);
  const first = !step
    ? `Without a training step, all time is loading: a batch of ${batch} takes ${wait}.`
    : bottleneck === false
      ? `Loading is not the bottleneck: with ${recommended}, a step of ${duration(step)} waits ${wait}, less than 10 % of it, if the step leaves the processor to the loader.`
      : bottleneck
        ? `Loading is the bottleneck: even with ${recommended}, a step of ${duration(step)} waits ${wait}.`
        : `Whether loading is the bottleneck is undecided: with ${recommended}, a step of ${duration(step)} waits ${wait}; more than 10 % of it would be one.`;
  const close = fitting.filter((each) => each.kind === "recommended" || each.kind === "as good").length;
  const those = bottleneck === false ? "those that keep up with training" : "these";
  const leads = rivals.length ? "has the shortest time" : "is the fastest";
  const dear = found.filter((each) => each.kind === "not worth installing").map((each) => each.name);
  const aside = dear.length ? `, besides ${dear.length} not worth installing` : "";
  const why =
    fitting.length === 1
      ? `${recommended} is the only strategy that is certain to fit${aside}.`
      : close > 1
        ? `Of the ${fitting.length} strategies that are certain to fit${aside}, ${close} are at most 10 % slower than the fastest. ${recommended} is the simplest of ${those}.`
        : `${recommended} ${leads} of the ${fitting.length} strategies that are certain to fit${aside}.`;
  const doubt = rivals.length ? ` Undecided: ${listed(rivals)} may be faster; more rounds would decide.` : "";
  const rest = lacking.length
    ? ` This covers ${measured} of ${found.length} strategies; what could be used and is not measured there: ${listed(lacking)}.`
    : "";
  const out = unknown.length ? ` Left out, as what memory they need is unknown: ${listed(unknown)}.` : "";
  const kept = dear.length ? ` Left out, as they fit but are not worth installing: ${listed(dear)}.` : "";
  const set = winner.settings ? ` Its process needs ${winner.settings} in its environment.` : "";
  const install = winner.needs ? ` It needs an installation: pip install ${winner.needs}.` : "";
  return [
    `${first} Use ${recommended}. ${why}${doubt} ` +
      `It needs at most ${enough(needs(winner))} for ${samples} samples.${set}${install}`,
    `${rest}${out}${kept}${beyond && ` ${beyond}`}`.trim(),
  ];
};
const advise = (section) => {
  const data = JSON.parse(section.querySelector(".choices").textContent);
  const form = section.querySelector("form");
  const snippet = section.querySelector(".snippet");
  const table = section.querySelector("table.fitting tbody");
  const names = Object.keys(data.values);
  const place = Object.fromEntries(names.map((name) => [name, Number(form.elements[name].value)]));
  const budget = form.elements.memory.selectedOptions[0].textContent;
  const asked = { ...Object.fromEntries(names.map((name) => [name, data.values[name][place[name]]])), place, budget };
  const choice = data.choices[form.elements.choice.selectedIndex];
  const decision = decisionOf(data, choice, place);
  section.querySelector(".source").textContent = choice.from;
  const [answer, besides = ""] = reasonsOf(decision, asked);
  section.querySelector(".advice").textContent = answer;
  const elsewhere =
    choice.machine === section.closest(".set").dataset.machine ? "" : `These are figures of ${choice.machine}.`;
  section.querySelector(".besides").textContent = `${elsewhere} ${besides}`.trim();
  const rank = (kind) => (RANK.includes(kind) ? RANK.indexOf(kind) : RANK.length);
  const lines = decision.found
    .map((each) => ({ ...each, waits: waitOf(each, asked) }))
    .sort((one, other) => rank(one.kind) - rank(other.kind) || (one.waits?.[0] ?? 0) - (other.waits?.[0] ?? 0));
  table.replaceChildren();
  for (const one of lines) {
    const line = table.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = one.name;
    line.append(name);
    const isShown = rank(one.kind) < RANK.length;
    const cells = {
      verdict: verdictOf(one, !decision.rivals.length),
      "memory needed": isShown ? estimated(one.memory[place.batch][place.samples], amount) : NONE,
      "a step waits": isShown && one.kind !== "time unknown" ? estimated(one.waits, duration) : NONE,
    };
    for (const [label, words] of Object.entries(cells)) {
      const cell = line.insertCell();
      cell.textContent = words;
      cell.dataset.label = label;
    }
    line.className = one.kind === "recommended" ? "picked" : "";
  }
  const { question } = form.elements.choice.selectedOptions[0].dataset;
  snippet.hidden = !section.closest("section.set") || !decision.recommended;
  snippet.querySelector("summary").textContent = `Code of ${decision.recommended}`;
  snippet.ontoggle = () => {
    if (!snippet.open) return;
    const code = codeOf(question, decision.recommended);
    snippet.querySelector("pre code").textContent = code || "Its code is in its author's own file.";
  };
  snippet.ontoggle();
};
for (const section of all("section.chooser")) {
  const form = section.querySelector("form");
  section.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    advise(section);
    remember();
  });
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
}

// What is shown is in the address: a set of results, a view of it, and whatever was changed in the view's form.
const sets = all("section.set");
const pick = document.getElementById("pick");
const selects = pick ? all("select", pick) : [];
for (const select of selects) {
  const values = [...new Set(sets.map((each) => each.dataset[select.name]))];
  select.closest("label").hidden = values.length < 2;
  select.append(...values.map((each, index) => new Option(each || "unknown", each, !index)));
  select.value = sets[0].dataset[select.name];
}
const formOf = (view) => view.querySelector("form.controls, .chooser form");
const usual = (field) =>
  field.type === "checkbox" ? "" : field.options ? ([...field.options].find((each) => each.defaultSelected) ?? field.options[0])?.value : field.defaultValue;
const valueOf = (field) => (field.type === "checkbox" ? (field.checked ? field.value : "") : field.value);
const fieldsOf = (form) => [...(form?.elements ?? [])].filter((each) => each.name);
let view = "start";
const chosen = () => sets.filter((each) => selects.every((select) => each.dataset[select.name] === select.value));
const shownView = () => {
  const views = chosen().flatMap((each) => all(".view", each));
  return views.find((each) => each.dataset.view === view) ?? views[0];
};
const address = () => {
  const changes = fieldsOf(shownView() && formOf(shownView()))
    .filter((field) => valueOf(field) !== usual(field))
    .map((field) => [field.name, valueOf(field)]);
  if (sets.length > 1 && shownView()) changes.unshift(["set", shownView().closest("section.set").id]);
  return `#${view}${changes.length ? `?${new URLSearchParams(changes)}` : ""}`;
};
const display = () => {
  const fitting = chosen();
  for (const each of sets) each.hidden = !fitting.includes(each);
  const current = shownView();
  if (current) view = current.dataset.view;
  for (const each of all(".view.shown")) each.classList.toggle("shown", each === current);
  if (current) {
    prepare(current);
    current.classList.add("shown");
  }
  for (const each of all("nav.views a")) {
    if (current && each.hash === `#${current.id}`) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  if (pick) {
    document.getElementById("picked").textContent = `Showing ${fitting.length} of ${sets.length} results.`;
  }
  if (current?.matches("section.comparison")) update(current);
  for (const chooser of current ? all("section.chooser", current) : []) advise(chooser);
};
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // the address was cut off
  }
};
// What has this id, wherever its view has not been parsed yet.
const withId = (id) => {
  const around = all(".view").find((each) => id.startsWith(`${each.id}-`));
  if (around) prepare(around);
  return document.getElementById(id);
};
const remember = () => history.replaceState(null, "", address());
const changed = (section) => {
  if (section?.matches("section.comparison")) update(section);
  else display();
  remember();
};
const follow = () => {
  const hash = decoded(location.hash.slice(1));
  const target = hash ? withId(hash) : null;
  const set = target?.closest("section.set");
  if (target && !set) return shownView()?.classList.contains("shown") ? undefined : display(); // not in the results
  if (set) {
    for (const select of selects) select.value = set.dataset[select.name];
    const named = target.closest(".view") ?? set.querySelector(".view");
    view = named.dataset.view;
    const [box, field] = [target.closest(".case"), formOf(named)?.elements.case];
    if (box && field) field.value = box.dataset.case;
  } else {
    const [name, said] = location.hash.slice(1).split("?");
    const wanted = new URLSearchParams(said);
    const wantedSet = sets.find((each) => each.id === wanted.get("set")) ?? sets[0];
    for (const select of selects) select.value = wantedSet.dataset[select.name];
    view = decoded(name) || "start";
    if (shownView()) prepare(shownView());
    for (const field of shownView()?.dataset.view === view ? fieldsOf(formOf(shownView())) : []) {
      const value = wanted.get(field.name) ?? usual(field);
      if (field.type === "checkbox") field.checked = value === field.value;
      else {
        field.value = value;
        if (field.options && field.selectedIndex < 0) field.value = usual(field); // a link from a page with other results
      }
    }
  }
  display();
  if (!set) return;
  if (target.matches("tr")) {
    target.querySelector("details").open = true;
    for (const each of all("tr.picked")) each.classList.remove("picked");
    target.classList.add("picked");
  } else if (target.matches(".view")) remember();
  (target.matches(".view") ? document.body : target).scrollIntoView();
};
if (pick) {
  document.getElementById("others").hidden = false;
  pick.addEventListener("input", ({ target }) => {
    if (!chosen().length) {
      // No results have all that is chosen: the other choices follow the last one.
      const having = sets.find((each) => each.dataset[target.name] === target.value);
      for (const select of selects) select.value = having.dataset[select.name];
    }
    display();
    remember();
  });
}
for (const button of all("button.copy")) {
  button.addEventListener("click", async () => {
    remember();
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "It is the address of this page";
    }
  });
}
addEventListener("hashchange", follow);
matchMedia("print").addEventListener("change", ({ matches }) => {
  if (matches) all(".view").forEach(prepare);
});
if (sets.length) follow();
