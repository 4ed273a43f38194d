/** All pages as one classic script, for the one-file form: a page that is opened from a disk can load no modules. */

import "./static/theme.js";
import "./main.tsx";
