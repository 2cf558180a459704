/* What the browser remembers; without storage the page works and says that it forgets. */

function available() {
  try {
    localStorage.setItem("actionspan", "1");
    return localStorage.getItem("actionspan") === "1";
  } catch {
    return false;
  }
}

export const store = {
  works: available(),

  read(key) {
    if (!this.works) return null;
    try {
      return JSON.parse(localStorage.getItem(`actionspan ${key}`));
    } catch {
      return null;
    }
  },

  /** Keep a value; null forgets it. Return whether it was kept. */
  write(key, value) {
    if (!this.works) return false;
    try {
      if (value === null) localStorage.removeItem(`actionspan ${key}`);
      else localStorage.setItem(`actionspan ${key}`, JSON.stringify(value));
      return true;
    } catch {
      return false; // it is full
    }
  },
};
