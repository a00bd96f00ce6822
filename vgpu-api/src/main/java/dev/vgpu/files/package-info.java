/** Which files this process trusts. For the modules of vgpu alone. */
@NullMarked
package dev.vgpu.files;

import org.jspecify.annotations.NullMarked;
