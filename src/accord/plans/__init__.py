"""Plans from what is already written: task lists, missions, sessions and checklists as planner results, and back."""
