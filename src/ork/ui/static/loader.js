// The only script that a one-file page contains as text: it unpacks the pages and their style, which are compressed in it.
// What it puts into the page runs because the page's policy names its hash.
(async () => {
  const unpacked = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };
  const policy = window.trustedTypes?.createPolicy("ork-loader", { createScript: (text) => text });
  try {
    const [style, script] = await Promise.all([unpacked("ork-style"), unpacked("ork-pages")]);
    document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
    document.body.append(Object.assign(document.createElement("script"), { textContent: policy ? policy.createScript(script) : script }));
  } catch (error) {
    document.getElementById("app").textContent = `This page cannot be opened: ${error}. It needs a current browser.`;
  }
})();
