// The picture of the map: points and words on a canvas that can be moved and zoomed.

const SPAN = 65535; // steps of a side, as in answers of the service
const TONES = 8;
const REACH = 12; // px around the pointer in which a point is found
const STILL = 5; // px that a click may move
const CLOSEST = 300; // times the scale at which all is seen
const MARGIN = 0.04;
const NARROW = 600; // px in which there is room for one word of a cluster

/** Draws a map: {x, y, cluster, clusters}. `over(number, x, y)` and `open(number)` tell what happens. */
export class Chart {
  #canvas;
  #pen;
  #tell;
  #x = new Float32Array(0);
  #y = new Float32Array(0);
  #clusters = [];
  #members = []; // numbers of the points of each cluster
  #bounds = { x: 0.5, y: 0.5, width: 1, height: 1 };
  #centre = { x: 0.5, y: 0.5 };
  #scale = 1; // px of a side
  #least = 1;
  #width = 0;
  #height = 0;
  #lit = [];
  #dimmed = false;
  #marked = null;
  #pointed = -1;
  #hovered = -1;
  #pointers = new Map();
  #moved = 0;
  #waiting = 0;
  #colours = null;
  #ending = new AbortController();
  #sizes;

  constructor(canvas, tell) {
    this.#canvas = canvas;
    this.#pen = canvas.getContext("2d");
    this.#tell = tell;
    const signal = this.#ending.signal;
    const listen = (kind, work, passive = true) =>
      canvas.addEventListener(kind, work.bind(this), { signal, passive });
    listen("pointerdown", this.#down);
    listen("pointermove", this.#move);
    listen("pointerup", this.#up);
    listen("pointercancel", this.#up);
    listen("pointerleave", () => this.#hover(-1));
    listen("wheel", this.#wheel, false);
    listen("dblclick", (event) => this.zoom(2, event.offsetX, event.offsetY));
    listen("keydown", this.#key, false);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#colours = null;
      this.#later();
    }, { signal });
    this.#sizes = new ResizeObserver(() => this.#resized());
    this.#sizes.observe(canvas);
  }

  /** Draw this map, all of it. */
  take(map) {
    this.grow(map);
    const [left, right] = ends(this.#x);
    const [top, bottom] = ends(this.#y);
    this.#bounds = {
      x: (left + right) / 2, y: (top + bottom) / 2,
      width: Math.max(right - left, 0.01), height: Math.max(bottom - top, 0.01),
    };
    this.all();
  }

  /** Draw a map that has further points, from where one looks. */
  grow({ x, y, cluster, clusters }) {
    this.#x = Float32Array.from(x, (each) => each / SPAN);
    this.#y = Float32Array.from(y, (each) => 1 - each / SPAN);
    this.#clusters = clusters.map((one) => ({ ...one, x: one.x / SPAN, y: 1 - one.y / SPAN }));
    this.#members = clusters.map(() => []);
    for (const [number, own] of cluster.entries()) this.#members[own].push(number);
    this.#later();
  }

  /** Light up these points; `dimmed` says that the others are pale. */
  light(numbers, dimmed) {
    this.#lit = numbers;
    this.#dimmed = dimmed;
    this.#later();
  }

  /** Bring out one cluster, or null for none. */
  mark(cluster) {
    this.#marked = cluster;
    this.#later();
  }

  /** Ring one point, or -1 for none. */
  point(number) {
    this.#pointed = number;
    this.#later();
  }

  /** Show all. */
  all() {
    const room = 1 - 2 * MARGIN;
    this.#least = Math.max(1, Math.min(
      (room * this.#width) / this.#bounds.width, (room * this.#height) / this.#bounds.height));
    this.#scale = this.#least;
    this.#centre = { x: this.#bounds.x, y: this.#bounds.y };
    this.#later();
  }

  /** Zoom, with what is at these px of the canvas staying there. */
  zoom(factor, x = this.#width / 2, y = this.#height / 2) {
    const scale = Math.min(Math.max(this.#scale * factor, this.#least / 1.5), this.#least * CLOSEST);
    const kept = 1 / this.#scale - 1 / scale;
    this.#centre.x += (x - this.#width / 2) * kept;
    this.#centre.y += (y - this.#height / 2) * kept;
    this.#scale = scale;
    this.#later();
  }

  /** Let go of everything. */
  end() {
    this.#ending.abort();
    this.#sizes.disconnect();
    cancelAnimationFrame(this.#waiting);
  }

  #resized() {
    const { clientWidth, clientHeight } = this.#canvas;
    const fitted = this.#scale === this.#least;
    this.#width = clientWidth;
    this.#height = clientHeight;
    this.#canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.#canvas.height = Math.round(clientHeight * devicePixelRatio);
    if (fitted) this.all();
    this.#draw(); // at once: a canvas of another size is empty
  }

  #pan(dx, dy) {
    const within = (value, middle, size) =>
      Math.min(Math.max(value, middle - size / 2), middle + size / 2);
    const { x, y, width, height } = this.#bounds;
    this.#centre.x = within(this.#centre.x - dx / this.#scale, x, width);
    this.#centre.y = within(this.#centre.y - dy / this.#scale, y, height);
    this.#later();
  }

  #down(event) {
    this.#canvas.setPointerCapture(event.pointerId);
    if (!this.#pointers.size) this.#moved = 0;
    this.#pointers.set(event.pointerId, event);
  }

  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.#hover(this.#at(event.offsetX, event.offsetY), event);
      return;
    }
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.#pointers.set(event.pointerId, event);
    const dx = event.clientX - before.clientX;
    const dy = event.clientY - before.clientY;
    this.#moved += Math.hypot(dx, dy);
    if (this.#moved < STILL) return;
    this.#hover(-1);
    this.#canvas.classList.add("moved");
    if (!other) return this.#pan(dx, dy);
    const far = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const box = this.#canvas.getBoundingClientRect();
    this.#pan(dx / 2, dy / 2);
    this.zoom(far(event) / Math.max(far(before), 1),
      (event.clientX + other.clientX) / 2 - box.x, (event.clientY + other.clientY) / 2 - box.y);
  }

  #up(event) {
    const held = this.#pointers.delete(event.pointerId);
    if (this.#pointers.size) return;
    this.#canvas.classList.remove("moved");
    if (!held || event.type !== "pointerup" || this.#moved >= STILL || event.button) return;
    const number = this.#at(event.offsetX, event.offsetY);
    if (number >= 0) this.#tell.open(number);
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1;
    this.#hover(-1);
    this.zoom(Math.exp(-Math.min(Math.max(event.deltaY * lines, -200), 200) / 300),
      event.offsetX, event.offsetY);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60;
    const work = {
      ArrowLeft: () => this.#pan(step, 0), ArrowRight: () => this.#pan(-step, 0),
      ArrowUp: () => this.#pan(0, step), ArrowDown: () => this.#pan(0, -step),
      "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5),
      0: () => this.all(),
    }[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }

  #hover(number, event) {
    if (number === this.#hovered) return;
    this.#hovered = number;
    this.#canvas.classList.toggle("over", number >= 0);
    this.#tell.over(number, event?.offsetX ?? 0, event?.offsetY ?? 0);
    this.#later();
  }

  /** The point at px of the canvas, those that are lit first; -1 for none. */
  #at(x, y) {
    const wx = this.#centre.x + (x - this.#width / 2) / this.#scale;
    const wy = this.#centre.y + (y - this.#height / 2) / this.#scale;
    let best = -1;
    let least = (REACH / this.#scale) ** 2;
    const look = (number) => {
      const square = (this.#x[number] - wx) ** 2 + (this.#y[number] - wy) ** 2;
      if (square < least) [best, least] = [number, square];
    };
    this.#lit.forEach(look);
    if (best < 0) for (let number = 0; number < this.#x.length; number += 1) look(number);
    return best;
  }

  #later() {
    cancelAnimationFrame(this.#waiting);
    this.#waiting = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    if (!this.#width || !this.#height) return;
    const begun = performance.now();
    const pen = this.#pen;
    this.#colours ??= coloursOf(this.#canvas);
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.#width, this.#height);
    const places = this.#drawPoints();
    this.#drawLit(places);
    this.#drawWords();
    Object.assign(this.#canvas.dataset, { // what is seen, for who asks the page
      points: String(this.#x.length),
      lit: String(this.#lit.length),
      view: [this.#scale, this.#centre.x, this.#centre.y].map((each) => each.toFixed(5)).join(" "),
      ms: (performance.now() - begun).toFixed(1),
    });
  }

  #placed(x, y) {
    return [(x - this.#centre.x) * this.#scale + this.#width / 2,
      (y - this.#centre.y) * this.#scale + this.#height / 2];
  }

  /** A path for each cluster, filled at once. */
  #drawPoints() {
    const pen = this.#pen;
    const many = this.#x.length;
    const grown = (this.#scale / this.#least) ** 0.4;
    const radius = Math.min(6, (many > 15000 ? 1.1 : many > 5000 ? 1.5 : many > 1000 ? 2.1 : 3.5) * Math.max(grown, 0.8));
    const round = radius > 1.6; // smaller ones are squares, which is not visible
    const [ox, oy] = this.#placed(0, 0);
    this.#clusters.forEach(({ tone }, own) => {
      pen.beginPath();
      for (const number of this.#members[own]) {
        const x = this.#x[number] * this.#scale + ox;
        const y = this.#y[number] * this.#scale + oy;
        if (x < -9 || y < -9 || x > this.#width + 9 || y > this.#height + 9) continue;
        if (round) {
          pen.moveTo(x + radius, y);
          pen.arc(x, y, radius, 0, 2 * Math.PI);
        } else {
          pen.rect(x - radius, y - radius, 2 * radius, 2 * radius);
        }
      }
      const pale = this.#marked === null ? this.#dimmed : this.#marked !== own;
      pen.globalAlpha = pale ? this.#colours.pale : 0.8;
      pen.fillStyle = this.#colours.tones[tone];
      pen.fill();
    });
    pen.globalAlpha = 1;
    return radius;
  }

  #drawLit(radius) {
    const pen = this.#pen;
    const disc = (number, size) => {
      pen.beginPath();
      pen.arc(...this.#placed(this.#x[number], this.#y[number]), size, 0, 2 * Math.PI);
    };
    // The best last, above the others, and larger.
    for (let rank = this.#lit.length - 1; rank >= 0; rank -= 1) {
      const number = this.#lit[rank];
      disc(number, Math.max(radius + 1, rank < 10 ? 5.5 : 3.6));
      pen.fillStyle = this.#colours.accent;
      pen.fill();
      pen.lineWidth = 1.4;
      pen.strokeStyle = this.#colours.surface;
      pen.stroke();
    }
    for (const number of [this.#hovered, this.#pointed]) {
      if (number < 0) continue;
      disc(number, Math.max(radius + 4, 9));
      pen.lineWidth = 2.5;
      pen.strokeStyle = this.#colours.ink;
      pen.stroke();
    }
  }

  /** Words of clusters, the largest first, where there is room for them. */
  #drawWords() {
    const pen = this.#pen;
    const size = 12.5;
    pen.font = `600 ${size}px ${this.#colours.family}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    const taken = [];
    const most = (this.#width < NARROW ? 1 : 2) + (this.#scale > 2 * this.#least ? 1 : 0);
    const order = this.#clusters.map((_, number) => number);
    if (this.#marked !== null) order.unshift(...order.splice(this.#marked, 1));
    for (const number of order) {
      const { words, x, y } = this.#clusters[number];
      const [px, py] = this.#placed(x, y);
      if (px < 0 || py < 0 || px > this.#width || py > this.#height) continue;
      const box = roomFor(words.slice(0, most), px, py, size, taken, this.#width, this.#height, pen);
      if (!box) continue;
      taken.push(box);
      const apart = this.#marked !== null && this.#marked !== number;
      pen.globalAlpha = apart || (this.#dimmed && this.#marked === null) ? 0.55 : 1;
      pen.lineWidth = 4;
      pen.strokeStyle = this.#colours.surface;
      pen.strokeText(box.text, box.x, box.y);
      pen.fillStyle = this.#colours.ink;
      pen.fillText(box.text, box.x, box.y);
    }
    pen.globalAlpha = 1;
  }
}

/** Place as many labels as fit without overlap, at their points or near them. */
function roomFor(words, x, y, size, taken, width, height, pen) {
  for (let used = words.length; used > 0; used -= 1) {
    const text = words.slice(0, used).join(" · ");
    const half = pen.measureText(text).width / 2 + 4;
    const inside = Math.min(Math.max(x, half + 4), width - half - 4);
    for (const step of [0, -1, 1, -2, 2]) {
      const box = { text, x: inside, y: y + step * (size + 5), half };
      if (box.y < size || box.y > height - size) continue;
      const free = taken.every((other) =>
        Math.abs(other.x - box.x) > other.half + half || Math.abs(other.y - box.y) > size + 5);
      if (free) return box;
    }
  }
  return null;
}

function coloursOf(canvas) {
  const style = getComputedStyle(canvas);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    tones: Array.from({ length: TONES }, (_, tone) => value(`--tone-${tone}`) || "#777"),
    ink: value("--ink"),
    surface: value("--surface"),
    accent: value("--accent"),
    pale: matchMedia("(prefers-color-scheme: dark)").matches ? 0.28 : 0.22,
    family: style.fontFamily,
  };
}

function ends(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
