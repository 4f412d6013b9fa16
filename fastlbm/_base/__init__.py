"""What every layer may use: checks of arguments, values, types, files, pools of workers."""
