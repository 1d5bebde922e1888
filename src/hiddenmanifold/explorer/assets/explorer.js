// What is drawn: curves, the dots of a simulation, colours, pictures, and what is said of them.
(function () {
  "use strict";
  const dash = (window.dash_clientside = window.dash_clientside || {});
  const set = (id, props) => dash.set_props(id, props);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let controller = null, describing = null, learning = null, resting = null;
  let asked = null, fitted = null; // of a file, and the loss of its last report
  let address = "", restored = true; // of the view that is shown, and whether the history has it

  function chosenTheme() {
    const asked = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    return localStorage.getItem("theme") || asked;
  }

  // black lines are drawn in the colour of the letters, so that they show on dark paper
  const inked = (colour) => (colour === "#000000" ? css("--ink") : colour);

  // a projector is seen from afar
  const afar = () => window.innerWidth > 1700;

  function trace(one) {
    const copy = Object.assign({}, one);
    if (one.line) copy.line = Object.assign({}, one.line, { color: inked(one.line.color) });
    if (one.line && afar()) copy.line.width *= 1.5;
    return copy;
  }

  function axis(given) {
    const ink = css("--ink"), grid = css("--grid");
    const own = { color: ink, gridcolor: grid, linecolor: ink, tickcolor: ink };
    return Object.assign({}, given, own);
  }

  function dotTraces(dots, drawing) {
    if (!dots || dots.setting !== drawing.setting) return [];
    const colours = drawing.data.filter((one) => one.meta && one.meta.curve === 0);
    return drawing.quantities.map((name, k) => {
      const known = dots.points.filter((point) => name in point.values);
      const colour = colours[k] ? inked(colours[k].line.color) : css("--ink");
      return {
        type: "scatter", mode: "markers", name: "simulation", showlegend: k === 0, cliponaxis: false,
        x: known.map((p) => p.x), y: known.map((p) => p.values[name]),
        error_y: { type: "data", visible: true, color: colour,
                   array: known.map((p) => p.values[name + "_stderr"] || 0) },
        marker: { color: css("--paper"), size: 8, line: { color: colour, width: 2 } },
        hovertemplate: "simulation: %{y:.4g}<extra></extra>", meta: { dots: name },
      };
    }).concat(dots.gaps.length ? [{
      type: "scatter", mode: "markers", name: "not simulated", yaxis: "y2",
      x: dots.gaps.map((g) => g.x), y: dots.gaps.map(() => 0.05), text: dots.gaps.map((g) => g.reason),
      marker: { symbol: "x", size: 9, color: css("--ink") }, hovertemplate: "%{text}<extra></extra>",
    }] : []);
  }

  async function read(response, heard) {
    const reader = response.body.getReader(), decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop();
      lines.filter(Boolean).forEach((line) => heard(JSON.parse(line)));
    }
  }

  function tell(text) { set("told", { children: text }); }

  async function run(query) {
    if (controller) controller.abort();
    document.body.dataset.simulating = "";
    const own = (controller = new AbortController());
    const dots = { setting: null, points: [], gaps: [] };
    let total = 1, ended = false;
    tell("starting");
    try {
      const response = await fetch("simulate?" + query, { method: "POST", signal: own.signal });
      if (!response.ok) throw new Error(await response.text());
      await read(response, (event) => {
        if (event.error) { ended = true; tell(event.error); return; }
        if (event.setting !== undefined) {
          dots.setting = event.setting;
          total = event.of;
          set("simulable", { data: event.setting });
        }
        if (event.values) dots.points.push({ x: event.x, values: event.values });
        if (event.reason) dots.gaps.push({ x: event.x, reason: event.reason });
        if (event.values || event.reason) {
          set("dots", { data: { setting: dots.setting, points: dots.points.slice(), gaps: dots.gaps.slice() } });
        }
        if (event.done !== undefined) {
          set("progress", { value: String(event.done), max: String(total) });
          tell(event.done + " of " + total + " points");
        }
        if (event.end) {
          ended = true;
          const gaps = dots.gaps.length ? "; " + dots.gaps[0].reason : "";
          tell("done: " + dots.points.length + " points" + gaps);
        }
      });
      if (!ended) tell("the server stopped answering");
    } catch (error) {
      tell(own.signal.aborted ? "cancelled after " + dots.points.length + " points" : String(error.message || error));
    } finally {
      if (controller === own) {
        controller = null;
        delete document.body.dataset.simulating;
      }
    }
  }

  function show(drawing) {
    const graph = document.querySelector("#graph .js-plotly-plot");
    const drawn = figure(drawing, null, null);
    return window.Plotly.react(graph, drawn.data, drawn.layout);
  }

  function figure(drawing, references, dots) {
    const known = references && references.address === drawing.address;
    const beside = known ? references : { data: [], shapes: [], annotations: [] };
    const size = afar() ? 21 : window.innerWidth < 500 ? 12 : 14;
    const layout = Object.assign({}, drawing.layout, {
      meta: drawing.address,
      xaxis: axis(drawing.layout.xaxis),
      yaxis: axis(drawing.layout.yaxis),
      shapes: beside.shapes,
      annotations: beside.annotations.map((one) => Object.assign({}, one, { font: { size: size - 2, color: css("--faint") } })),
      paper_bgcolor: css("--paper"), plot_bgcolor: css("--paper"),
      font: { family: css("--font"), size: size, color: css("--ink") },
    });
    const data = drawing.data.concat(beside.data).map(trace).concat(dotTraces(dots, drawing));
    // what one curve is stands beside its axis
    layout.showlegend = layout.showlegend !== false && data.filter((one) => one.showlegend !== false).length > 1;
    return { data: data, layout: layout };
  }

  // what takes long waits until the sliders rest; whoever moves on ends it
  function rest() {
    hush();
    resting = setTimeout(async () => {
      describing = new AbortController();
      try {
        const response = await fetch("describe?" + address, { method: "POST", signal: describing.signal });
        if (response.ok) await read(response, (event) => {
          if (event.data) set("references", { data: event });
          if (!event.sentence) return;
          set("sentence", { children: event.sentence });
          delete document.body.dataset.stale;
        });
      } catch (error) { // ended by whoever moved on
      }
    }, 300);
  }

  function hush() {
    clearTimeout(resting);
    document.body.dataset.stale = ""; // what is said below is no longer of what is shown
    if (describing) describing.abort();
  }

  // what the address tells of the loss
  function loss() {
    const texts = Array.from(new URLSearchParams(address));
    return String(new URLSearchParams(texts.filter(([name]) => name === "loss" || name.startsWith("loss."))));
  }

  // what more samples of a file would bring; a newer question ends the older
  async function learn() {
    const input = document.querySelector("#field-upload"), file = input && input.files[0];
    if (!file || !asked) return;
    const name = file.name;
    if (learning) learning.abort();
    const own = (learning = new AbortController());
    const tell = (text) => set("learning-told", { children: text });
    const { most, more } = document.querySelector("#uploading").dataset;
    if (file.size > Number(most)) return tell(more);
    tell("reading " + name);
    fitted = asked.loss || loss();
    try {
      const query = new URLSearchParams({ name: name, ...asked, page: loss() });
      const response = await fetch("learn?" + query, { method: "POST", body: file, signal: own.signal });
      if (!response.ok) throw new Error(await response.text());
      await read(response, (event) => {
        tell(event.error || event.slow || "");
        if (!event.learning) return;
        set("learned", { hidden: false });
        set("learning", { data: event.learning });
        set("learning-number", { children: event.learning.number });
        set("learning-words", { children: event.learning.words });
        set("learning-sentence", { children: event.learning.headline });
        set("learning-loss", { children: event.learning.loss });
        set("learning-report", { children: event.learning.report });
        set("learning-python", { children: event.learning.python });
      });
    } catch (error) {
      if (!own.signal.aborted) tell(String(error.message || error));
    }
  }

  dash.explorer = {
    hush: hush,
    show: show,
    learn: function (label, task, gain, positive, loss) {
      asked = { label: label || "", task: task || "", gain: gain || "", positive: positive || "", loss: loss || "" };
      const place = document.querySelector("#upload");
      if (place.firstChild) return learn();
      const input = Object.assign(document.createElement("input"), { type: "file", id: "field-upload", accept: place.dataset.kinds });
      input.addEventListener("change", learn);
      place.append(input);
    },
    drawLearning: function (learned) {
      if (!learned) return dash.no_update;
      const { shapes, annotations } = learned;
      return figure(learned, { data: [], shapes: shapes, annotations: annotations }, null);
    },
    draw: function (drawing, references, dots) {
      if (!drawing || dash.controls.moving()) return dash.no_update; // a slider has moved on
      dash.controls.drawn(drawing);
      return figure(drawing, references, dots);
    },
    saveReport: function (clicks, learned) {
      if (clicks && learned) set("download", { data: { content: learned.page, filename: "report.html", type: "text/html" } });
    },
    saveStudy: function (_, study) {
      const pressed = dash.callback_context.triggered_id;
      if (!pressed || !study) return;
      const types = { html: "text/html", md: "text/markdown" };
      set("download", { data: { content: study.files[pressed.name], filename: "sample_size." + pressed.name, type: types[pressed.name] } });
    },
    // the address of the page is that of the view; a new question is a new place in the history
    remember: function (now) {
      if (now === undefined || now === null) return;
      const question = (query) => new URLSearchParams(query).get("quantity");
      const place = "?" + (now || "quantity=generalisation_error") + window.location.hash;
      if (!restored && question(now) !== question(address)) window.history.pushState(null, "", place);
      else window.history.replaceState(window.history.state, "", place);
      restored = false;
      address = now;
      rest();
    },
    arrive: () => window.location.search,
    address: () => address,
    theme: function (clicks) {
      let theme = chosenTheme();
      if (clicks) {
        theme = theme === "dark" ? "light" : "dark";
        localStorage.setItem("theme", theme);
      }
      document.documentElement.dataset.theme = theme;
      return theme;
    },
    picture: function () {
      const pressed = dash.callback_context.triggered_id;
      const graph = document.querySelector("#graph .js-plotly-plot");
      if (!pressed || !graph) return;
      const size = { width: 900, height: 560, filename: "view" };
      window.Plotly.downloadImage(graph, Object.assign({ format: pressed.name, scale: pressed.name === "png" ? 2 : 1 }, size));
    },
    simulate: function (clicks, address) {
      if (clicks) run(address || "");
    },
    cancel: function () {
      if (controller) controller.abort();
    },
  };

  function visit(query) {
    restored = true;
    set("visited", { data: query });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.preset");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const menu = link.closest("details");
    menu.open = false;
    menu.querySelector("summary").focus(); // of whoever uses keys, who would else be at the top again
    window.history.pushState(null, "", link.search);
    visit(link.search);
  });
  window.addEventListener("popstate", () => {
    const query = window.location.search;
    if (query !== "?" + address) visit(query); // and not another area of the same view
  });
  window.addEventListener("hashchange", () => { // the loss may be another by now
    if (window.location.hash === "#data" && asked && fitted !== null && fitted !== (asked.loss || loss())) learn();
  });
  document.documentElement.dataset.theme = chosenTheme();
})();
