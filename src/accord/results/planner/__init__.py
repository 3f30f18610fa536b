"""A planner's result: work items to create, close and update, and what they wait for."""
