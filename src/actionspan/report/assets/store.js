/* The memory of the browser; without storage the page works and states that it forgets. */

function available() {
  try {
    localStorage.setItem("actionspan", "1");
    return localStorage.getItem("actionspan") === "1";
  } catch {
    return false;
  }
}

const PREFIX = "actionspan ";

/** Hear of each value that another tab keeps, by its key. */
export function onKept(listener) {
  addEventListener("storage", ({ key }) => {
    if (key?.startsWith(PREFIX)) listener(key.slice(PREFIX.length));
  });
}

export const store = {
  works: available(),

  read(key) {
    if (!this.works) return null;
    try {
      return JSON.parse(localStorage.getItem(PREFIX + key));
    } catch {
      return null;
    }
  },

  /** Keep a value; null forgets it. Return whether it was kept. */
  write(key, value) {
    if (!this.works) return false;
    try {
      if (value === null) localStorage.removeItem(PREFIX + key);
      else localStorage.setItem(PREFIX + key, JSON.stringify(value));
      return true;
    } catch {
      return false; // it is full
    }
  },
};
