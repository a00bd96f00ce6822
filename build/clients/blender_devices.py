"""What Blender's Cycles finds to render on."""

import bpy

preferences = bpy.context.preferences.addons["cycles"].preferences
for kind in "CUDA", "OPTIX":
    for device in preferences.get_devices_for_type(kind) or []:
        print("device:", kind, device.type, device.name, device.id)
