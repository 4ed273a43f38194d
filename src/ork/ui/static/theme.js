// Sets the chosen theme before the first picture; without a choice the system's is used.
try {
  const theme = localStorage.getItem("ork.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {}
// An exported folder opened from a disk cannot load its scripts, and says so.
if (location.protocol === "file:") document.documentElement.dataset.fromDisk = "";
