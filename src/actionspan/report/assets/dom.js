/* Elements of the page. Text from data goes in as text nodes only, never as markup. */

export const byId = (id) => document.getElementById(id);

/** Make an element; `onclick` and the like are listeners, true is an attribute without a value. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const icon = (name) =>
  svg("svg", { "aria-hidden": "true" }, svg("use", { href: `#${name}` }));

export function setIcon(button, name) {
  button.querySelector("use").setAttribute("href", `#${name}`);
}

/** Announce to a screen reader something that can otherwise only be seen. */
export function announce(text) {
  const live = byId("live");
  live.textContent = "";
  requestAnimationFrame(() => {
    live.textContent = text;
  });
}

/** Return a colour of the style sheet as a canvas understands it. */
export function colour(name) {
  const probe = el("span", { hidden: true });
  document.body.append(probe);
  probe.style.color = `var(--${name})`;
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
